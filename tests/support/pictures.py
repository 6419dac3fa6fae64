"""PNG files taken apart."""

from __future__ import annotations

import struct
from pathlib import Path


def size(png: bytes) -> tuple[int, int]:
    """Width and height, from the PNG's own header."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert png.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


_WITHOUT = """\
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def without_matplotlib(folder: Path) -> dict[str, str]:
    """The environment in which Python finds no matplotlib, as where the extra was not installed."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_WITHOUT)
    return {"PYTHONPATH": str(folder)}
