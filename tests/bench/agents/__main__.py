"""Agents with gpudebug and without, over the zoo: `python -m tests.bench.agents`.

Scripted agents of several characters; `GPUDEBUG_EVAL_AGENT='CMD'` adds a real one, which reads its task on
standard input. A series that was cut off goes on where it was, from `--results`. What an agent of these has
validated is accepted and exported by a person. With `--stranger` somebody else keeps one core busy.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.agents.characters import CHARACTERS
from tests.bench.agents.outcome import CONTROL, Cell, Results, shares, table
from tests.bench.agents.program import prepare, stopwatch
from tests.bench.agents.sessions import REAL, VARIABLE, available, session

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = (
    *("digit_ranker", "basket_recommender", "street_scenes", "sequence_tagger"),
    *("wafer_autoencoder", "conformer_energy", "quake_picker", "leaf_classifier"),
)
FEW = 2
"""Programs of the other characters, and of the protocol."""
REPEATS = 3


def plan(programs: Sequence[str], characters: Sequence[str], faces: Sequence[str], real: int) -> list[Cell]:
    """The sessions of a series: the control and the thorough agent on all programs, the rest on two.

    A real agent, with gpudebug and without, runs `real` times on each of the two.
    """
    cells = [Cell(program, CONTROL, "none") for program in programs]
    for face in faces:
        for character in characters:
            few = programs[:FEW] if character != "thorough" or face != "cli" else programs
            cells += [Cell(program, character, face) for program in few]
    cells += [
        Cell(program, character, "own", repeat)
        for program in programs[:FEW]
        for character in REAL
        for repeat in range(real)
    ]
    return cells


def main(argv: Sequence[str] | None = None) -> int:
    asked = _options(argv)
    results = Results(asked.results)
    with stranger() if asked.stranger and not asked.table else nullcontext():
        _run(asked, results)
    print(table(results))
    print("\n".join(["", *shares(results)]))
    return 0


def _run(asked: argparse.Namespace, results: Results) -> None:
    cells = plan(asked.programs, asked.characters, asked.faces, asked.repeats if available() else 0)
    for program in asked.programs if not asked.table else ():
        if program not in results.truths:
            with TemporaryDirectory(prefix="gpudebug-eval-") as folder:
                results.add_truth(program, stopwatch(prepare(program, Path(folder) / "repository")))
    for cell in cells if not asked.table else ():
        if cell not in results.outcomes:
            print(f"{cell.program} {cell.character} {cell.face} {cell.repeat}", file=sys.stderr, flush=True)
            results.add(session(cell, asked.transcripts))


@contextmanager
def stranger() -> Iterator[None]:
    """Somebody who is no part of a session and never waits, on one core."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"A real agent: {VARIABLE}='claude -p'")
    parser.add_argument("--programs", type=_names(PROGRAMS), default=PROGRAMS, help="of the zoo, by commas")
    parser.add_argument("--characters", type=_names(CHARACTERS), default=tuple(CHARACTERS))
    parser.add_argument("--faces", type=_names(("cli", "mcp")), default=("cli", "mcp"))
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of a real agent")
    parser.add_argument("--results", type=Path, default=ROOT / "runs" / "agents-eval.jsonl")
    parser.add_argument("--transcripts", type=Path, help="a folder for what was said")
    parser.add_argument(
        "--stranger", action="store_true", help="keep one core busy; for --results of its own"
    )
    parser.add_argument("--table", action="store_true", help="print what was recorded; run nothing")
    return parser.parse_args(argv)


def _names(known: Sequence[str] | dict[str, object]) -> object:
    def read(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known are {', '.join(known)}")
        return names

    return read


if __name__ == "__main__":
    sys.exit(main())
