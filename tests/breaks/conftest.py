import os
import sys
from pathlib import Path

os.environ["CDYNAMO_STRICT"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1] / "differential"))  # the oracle's comparison
