"""What `gpudebug analyze` says of a trace as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def trace(answer: Mapping[str, Any]) -> str:
    return f"{answer['file']}: trace"
