"""Where the tests keep recordings and programs, from whichever folder a test asks."""

from __future__ import annotations

from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
DATA = SUPPORT.parent / "data"
