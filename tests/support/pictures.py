"""PNG files taken apart."""

from __future__ import annotations

import io
import struct
from pathlib import Path


def size(png: bytes) -> tuple[int, int]:
    """Width and height, from the PNG's own header."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert png.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def painted(png: bytes, colour: str, within: int = 40) -> int:
    """How many pixels have about this colour (`#1f6fb4`); Pillow decodes the whole picture."""
    import numpy as np
    from PIL import Image

    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    with Image.open(io.BytesIO(png)) as picture:
        pixels = np.asarray(picture.convert("RGB"), dtype=int)
    return int((np.abs(pixels - wanted).max(axis=2) <= within).sum())


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
