"""Lets the tests of this folder share winc_refhost."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
