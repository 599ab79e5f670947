"""The benches of the report tests serve the analysis tests too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "report"))
