from __future__ import annotations

import sys
from pathlib import Path

# Workers must be able to import the jobs, as they import a method.
sys.path.insert(0, str(Path(__file__).parent))
