"""Real campaigns on the programs of others: `python -m tests.field [NAME…]`. See docs/tested.md.

What was measured stays in OUT/NAME.json and is not measured again; delete the file to do so.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.field import report
from tests.field.campaign import begin, end, judged
from tests.field.cases import CASES, Case, Change
from tests.field.programs import Place, stranger, truth, version


def main() -> None:
    wanted = _arguments()
    cases = [case for case in CASES if case.name in wanted.names or not wanted.names]
    if unknown := set(wanted.names) - {case.name for case in CASES}:
        raise SystemExit(
            f"no case {', '.join(sorted(unknown))}: there are {', '.join(c.name for c in CASES)}"
        )
    place = Place(wanted.out.absolute(), wanted.sources.absolute(), wanted.python.absolute(), wanted.stranger)
    place.out.mkdir(parents=True, exist_ok=True)
    with stranger(wanted.stranger):
        for case in cases:
            if wanted.aa:
                _kept(case, place, "-aa", lambda record, case=case: _nothing(case, place, record, wanted.aa))
            elif wanted.cheats:
                _kept(case, place, "-cheats", lambda record, case=case: _cheats(case, place, record))
            else:
                _kept(case, place, "", lambda record, case=case: _fix(case, place, record, wanted.repeats))
    found = report.records(place.out)
    print(report.table(found), report.counts(found), sep="\n\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.field", description=__doc__)
    parser.add_argument("names", nargs="*", help="the cases; all of them by default")
    beside = {"dest": "stranger", "action": "store_const", "default": ""}
    parser.add_argument("--stranger", const="1/1", help="a process takes one core all the while", **beside)
    parser.add_argument("--comes-and-goes", const="40/90", help="it does for 40 s of each 90", **beside)
    parser.add_argument("--out", type=Path, default=Path("field"), help="where results are kept")
    parser.add_argument("--sources", type=Path, default=Path("sources"), help="the clones of repositories")
    parser.add_argument("--python", type=Path, default=Path("python"), help="has the programs' packages")
    parser.add_argument("--repeats", type=int, default=2, help="of the stopwatch; 0 leaves it out")
    parser.add_argument("--aa", type=int, metavar="N", help="N trials that change nothing")
    parser.add_argument("--cheats", action="store_true", help="the changes that only look like fixes")
    return parser.parse_args()


class _Record(dict[str, Any]):
    """What is known of one case, written whenever more is."""

    def __init__(self, path: Path) -> None:
        super().__init__(json.loads(path.read_text()) if path.exists() else {})
        self._path = path

    def keep(self, **values: Any) -> None:
        self.update(values)
        self._path.write_text(json.dumps(self, indent=1) + "\n")


def _kept(case: Case, place: Place, kind: str, measure: Callable[[_Record], None]) -> None:
    name = f"{case.name}{kind}{place.beside}"
    record = _Record(place.out / f"{name}.json")
    if record.get("done"):
        return
    print(f"{name}: begun at load {os.getloadavg()[0]:.1f}", flush=True)
    try:
        record.keep(name=case.name, stranger=place.stranger, version=version(case, place))
        measure(record)
    except (SystemExit, OSError) as error:
        # The others are measured all the same; this one is tried again the next time.
        print(f"{name}: {error}", flush=True)
        return
    record.keep(done=True)


def _fix(case: Case, place: Place, record: _Record, repeats: int) -> None:
    folder = place.out / "work" / f"{case.name}{place.beside}"
    if repeats and "truth" not in record:
        record.keep(truth=truth(case, place, repeats))
        print(f"  truth {record['truth']['ratio']}, load {record['truth']['load']}", flush=True)
    started, load = time.monotonic(), os.getloadavg()[0]
    gpudebug = begin(case, place, folder)
    verdict = judged(gpudebug, case, folder, case.fix)
    whole = end(gpudebug, folder)
    wall = round(time.monotonic() - started)
    record.keep(fix=verdict, end=whole, wall_s=wall, load=[load, os.getloadavg()[0]])
    print(f"  {verdict['verdict']}: {verdict['why']}", flush=True)


def _nothing(case: Case, place: Place, record: _Record, trials: int) -> None:
    changes = [Change(f"Nothing, {i}", ("--env", f"FIELD_UNREAD={i}"), valid=False) for i in range(trials)]
    settings = {"allow_env": ["FIELD_UNREAD"], "budget": {"hypotheses": trials + 1, "device_time": "10h"}}
    _many(case, place, record, "aa", changes, settings)


def _cheats(case: Case, place: Place, record: _Record) -> None:
    _many(case, place, record, "cheats", list(case.cheats), {})


def _many(
    case: Case, place: Place, record: _Record, kind: str, changes: list[Change], settings: dict[str, object]
) -> None:
    """Changes one after the other in one campaign; those that have a verdict already are not tested again."""
    folder = place.out / "work" / f"{case.name}-{kind}{place.beside}"
    if not changes:
        return
    gpudebug = begin(case, place, folder, settings)
    verdicts: list[dict[str, Any]] = []
    for change in changes:
        verdicts.append(judged(gpudebug, case, folder, change))
        record.keep(**{kind: verdicts}, load=os.getloadavg()[0])
        print(f"  {change.title}: {verdicts[-1]['verdict']}: {verdicts[-1]['why']}", flush=True)
    record.keep(end=end(gpudebug, folder))


if __name__ == "__main__":
    main()
