"""bench_builder lies beside the tests and serves those of the analysis too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
