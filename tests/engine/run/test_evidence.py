"""Samples and log give the same evidence for as long as the rule of evidence has its number.

Other evidence that is meant raises EVIDENCE_RULE; `python -m tests.engine.run.test_evidence` then writes
`tests/data/evidence.json` anew.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.support.campaigns import record
from tests.support.places import DATA

from gpudebug.core.evidence.build import EVIDENCE_RULE
from gpudebug.core.records import DeviceInfo, RunRecord
from gpudebug.core.redaction.alike import differences
from gpudebug.core.words import Outcome
from gpudebug.edges import store
from gpudebug.engine.run.evidence import evidence_again

GOLDEN = DATA / "evidence.json"
CPU = DeviceInfo(index=0, uuid="CPU", name="recorded", kind="replay")
_BUSY = {"util": 60.0, "seconds": 12.0}
RECORDED: dict[str, dict[str, Any]] = {
    "counts steps": _BUSY,
    "is too short": {**_BUSY, "seconds": 4.0},
    "prints nothing": {**_BUSY, "log": ""},
    "idles": {**_BUSY, "util": 0.5},
    "prints its rate and its work": {
        **_BUSY,
        "losses": lambda share: f"{2 - share:.3f} 10.2 steps/s num_tokens={round(512 * 120 * share)}",
    },
    "prints a reward and latencies": {
        **_BUSY,
        "losses": lambda share: f"{2 - share:.3f} ep_rew_mean={20 + share:.2f} latency: {9 + share:.2f} ms",
    },
}


def read(folder: Path) -> dict[str, Any]:
    """Return the evidence of each, by its name."""
    found = {}
    for number, (name, how) in enumerate(RECORDED.items(), 1):
        run = record(folder, f"{number:04}-h1", **how)
        ended = RunRecord(
            name=run.name,
            campaign="c",
            role="h1",
            command="",
            argv=(),
            cwd="/",
            start="now",
            outcome=Outcome.COMPLETED,
            exit_status=0,
            duration_s=how["seconds"],
            devices=(CPU,),
        )
        found[name] = evidence_again(store.RunFolder(run, str), ended)
    return found


def test_the_same_files_give_the_same_evidence(tmp_path: Path) -> None:
    golden = json.loads(GOLDEN.read_text("utf-8"))
    now = {name: evidence.model_dump(mode="json") for name, evidence in read(tmp_path).items()}
    other = [(d.field, d.expected, d.found) for d in differences(golden["evidence"], now)]
    assert other == [], __doc__
    assert golden["rule"] == EVIDENCE_RULE


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = read(Path(folder))
    evidence = {name: one.model_dump(mode="json", exclude_defaults=True) for name, one in found.items()}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in evidence.items())
    GOLDEN.write_text(f'{{\n "rule": "{EVIDENCE_RULE}",\n "evidence": {{\n{lines}\n }}\n}}\n', "utf-8")


if __name__ == "__main__":
    main()
