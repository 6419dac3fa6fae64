"""The first contact with a GPU, in at most nine minutes: `python -m tests.gpu [PART…]`.

It measures what was never run on a GPU, prints what each part saw, and packs what it recorded. It needs an
NVIDIA GPU that nothing else uses, and changes no setting of it.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.gpu.figures import beside
from tests.gpu.packing import pack
from tests.gpu.parts import PARTS, Kit, LackingError, Machine, machine

from gpudebug import __version__

_SPARE_S = 10.0
_REHEARSED_S = 3600.0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--python", default=sys.executable, help="the Python with PyTorch for CUDA")
    parser.add_argument("--seconds", type=float, default=540, help="all parts together")
    parser.add_argument("-o", "--out", type=Path, default=Path("first-contact.tar.gz"))
    parser.add_argument("--rehearse", action="store_true", help="a CPU trains: no evidence")
    options = parser.parse_args(argv)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if options.out.exists():
        parser.error(f"{options.out} is there already")
    with tempfile.TemporaryDirectory(prefix="first-contact-") as folder:
        kit = Kit(Path(folder, "work"), Path(folder, "kept"), options.python, options.rehearse)
        kit.work.mkdir()
        kit.kept.mkdir()
        there = machine(options.python, rehearsal=options.rehearse)
        found = f"{there.text or there.gpu}{' (a rehearsal: no evidence)' if options.rehearse else ''}"
        lines = [f"gpudebug {__version__}, Python {platform.python_version()}: {found}"]
        print(lines[0], flush=True)
        for line in contact(kit, there, options.parts or [*PARTS], options.seconds):
            print(line, flush=True)
            lines.append(line)
            pack(kit.kept, lines, options.out, kit.places)
    return 0


def contact(kit: Kit, there: Machine, names: Sequence[str], seconds: float) -> Iterator[str]:
    """Run the parts in their order; each leaves time for later ones, and none stops another."""
    end = time.monotonic() + seconds - _SPARE_S
    chosen = [name for name in PARTS if name in names]
    for n, name in enumerate(chosen):
        part, began = PARTS[name], time.monotonic()
        kit.until = min(began + part.limit_s, end - sum(PARTS[later].least_s for later in chosen[n + 1 :]))
        if kit.rehearsal:
            kit.until = began + _REHEARSED_S
        lacking = next((why for need in part.needs if (why := getattr(there, need)) is not None), None)
        if lacking is not None:
            yield f"{name}: left out: {lacking}"
            continue
        try:
            yield from (f"{name}: {line}" for line in part.run(kit))
        except LackingError as e:
            yield f"{name}: {e}"
        except Exception as e:  # noqa: BLE001 - the others shall run
            yield f"{name}: failed: {type(e).__name__}: {e}"
        yield f"{name}: {time.monotonic() - began:.0f} s"
    yield from (f"assumed: {line}" for line in beside(kit.measured))


if __name__ == "__main__":
    sys.exit(main())
