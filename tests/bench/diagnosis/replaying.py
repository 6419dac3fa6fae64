"""A campaign made of a recording: what `next` would do is asked of gpudebug itself, and nothing is run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.bench.diagnosis import sheet
from tests.bench.diagnosis.recording import Recording, Run
from tests.support import zoo

from gpudebug.core.campaign.decide import Action, decide
from gpudebug.core.diagnosis.model import Diagnosis
from gpudebug.edges import store
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.case import DiagnosisCase, case_of
from gpudebug.engine.diagnosis.weights import weighed


class Replay:
    """The campaign of a recorded program, with whatever hypotheses have been tested so far."""

    def __init__(self, recording: Recording, folder: Path) -> None:
        self.recording = recording
        campaign = zoo.make_zoo_campaign(folder, recording.program)
        self._root, self._progress = campaign.folder, campaign.progress
        self.untested = sheet.entries(self._progress.read_text())
        # What a baseline is valid for is this copy's now.
        self._identities: Mapping[str, Mapping[str, str]] = load(self._root).history.identities
        for run in recording.runs:
            self._restore(run)
        self.show({})

    def show(self, tested: Mapping[int, str]) -> None:
        """Write the progress file with these entries tested, by their blocks, and all others untested."""
        blocks = {**self.untested, **tested}
        self._progress.write_text(sheet.composed(self.recording.program, self.recording.baselines, blocks))

    def tested(self, number: int) -> str:
        """What became of a hypothesis: its runs are there now, its entry is to be shown."""
        for run in self.recording.trials[number].runs:
            self._restore(run)
        return self.recording.trials[number].entry

    def decision(self) -> Action:
        """What `gpudebug next` would do."""
        return decide(weighed(load(self._root)))

    def case(self) -> DiagnosisCase:
        """What `gpudebug diagnose` goes by."""
        return case_of(load(self._root))

    def diagnosis(self) -> Diagnosis:
        return self.case().diagnosis

    def _restore(self, run: Run) -> None:
        folder = self._root / "runs" / run.name
        folder.mkdir(parents=True, exist_ok=True)
        for name, record in run.files.items():
            (folder / name).write_text(json.dumps(self._adopted(record) if name == "run.json" else record))
        store.RunFolder(folder, lambda text: text).seal()

    def _adopted(self, record: dict[str, object]) -> dict[str, object]:
        role = "reference" if record["role"] == "baseline-reference" else "workload"
        return {**record, "identity": dict(self._identities[role])}
