"""Two kernels in PTX that end when the GPU's clock says so: one thread that waits, and a grid that works."""

from __future__ import annotations

from collections.abc import Sequence

# Architectures with the PTX version that knows them first (PTX ISA, release notes). The driver compiles PTX
# for an older architecture on a newer GPU, so the newest here that is not newer than the GPU is taken.
_TARGETS = ((50, "4.0"), (60, "5.0"), (70, "6.0"), (75, "6.3"), (80, "7.0"), (90, "7.8"))
# So many turns end a kernel whose clock stands still: seconds at the least, where milliseconds are asked for.
_MOST_TURNS = 100_000_000
_CHAINS = 8
_FMAS = 64

WORK_THREADS = 256
WORK_BLOCKS_PER_SM = 2
"""All blocks of the working grid are resident at once, so that they end together."""


def ptx(major: int, minor: int) -> str:
    """The module for a GPU of this compute capability: entries `spin` and `work`, each (u64 ns, u64 address).

    A kernel runs for `ns` nanoseconds of %globaltimer. `address` is memory for a float that is never
    written: it keeps the compiler from dropping the work.
    """
    target, version = next(((t, v) for t, v in reversed(_TARGETS) if t <= 10 * major + minor), _TARGETS[0])
    head = (f".version {version}", f".target sm_{target}", ".address_size 64")
    return "\n".join((*head, *_entry("spin", (), ()), *_entry("work", _chains(), _never()))) + "\n"


def _entry(name: str, before: Sequence[str], after: Sequence[str]) -> list[str]:
    """One kernel: `before` prepares registers, each turn works on them, `after` uses what came of it."""
    turn = [f"fma.rn.f32 %x{i % _CHAINS}, %x{i % _CHAINS}, %a, %b;" for i in range(_CHAINS * _FMAS)]
    return [
        f".visible .entry {name}(.param .u64 {name}_ns, .param .u64 {name}_out)",
        "{",
        ".reg .pred %more, %never;",
        ".reg .u64 %ns, %out, %start, %now;",
        ".reg .u32 %turns, %me;",
        f".reg .f32 %x<{_CHAINS}>, %a, %b;",
        f"ld.param.u64 %ns, [{name}_ns];",
        f"ld.param.u64 %out, [{name}_out];",
        *before,
        "mov.u32 %turns, 0;",
        "mov.u64 %start, %globaltimer;",
        f"{name}_turn:",
        *(turn if before else ()),
        "add.u32 %turns, %turns, 1;",
        "mov.u64 %now, %globaltimer;",
        "sub.u64 %now, %now, %start;",
        "setp.lt.u64 %more, %now, %ns;",
        f"setp.lt.and.u32 %more, %turns, {_MOST_TURNS}, %more;",
        f"@%more bra {name}_turn;",
        *after,
        "ret;",
        "}",
    ]


def _chains() -> list[str]:
    first = ["mov.u32 %me, %tid.x;", "cvt.rn.f32.u32 %x0, %me;"]
    rest = [f"add.f32 %x{i}, %x{i - 1}, 0f3F800000;" for i in range(1, _CHAINS)]
    # x becomes x * 0.99999994 + 0.001, which stays finite however often.
    return [*first, *rest, "mov.f32 %a, 0f3F7FFFFF;", "mov.f32 %b, 0f3A83126F;"]


def _never() -> list[str]:
    sums = [f"add.f32 %x0, %x0, %x{i};" for i in range(1, _CHAINS)]
    store = ["cvta.to.global.u64 %out, %out;", "@%never st.global.f32 [%out], %x0;"]
    return [*sums, "setp.eq.f32 %never, %x0, 0fFF800000;", *store]
