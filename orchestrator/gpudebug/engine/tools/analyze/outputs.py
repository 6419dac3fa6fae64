"""The files that `gpudebug analyze` writes beside its answer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpudebug.core.answers.answer import with_texts
from gpudebug.core.errors import UsageError
from gpudebug.core.redaction.records import scrubbed_record
from gpudebug.core.redaction.redact import Redactor
from gpudebug.edges import store
from gpudebug.engine.run import outputs

if TYPE_CHECKING:
    from gpudebug.core.answers.analyze import AnalyzeAnswer
    from gpudebug.engine.tools.analyze.kinds import AnalyzedFile


@dataclass(frozen=True)
class Outputs:
    """Where to write what; None for what was not asked for. `force` replaces what gpudebug did not write."""

    output: Path | None = None
    charts: Path | None = None
    detailed: Path | None = None
    force: bool = False

    @property
    def paths(self) -> list[Path]:
        return [path for path in (self.output, self.charts, self.detailed) if path is not None]

    def _ours(self) -> list[tuple[Path, outputs.Ours]]:
        """Return each file to write, and how one of gpudebug's own is recognised."""
        kinds = (
            (self.output, outputs.is_text),
            (self.charts, outputs.is_picture),
            (self.detailed, outputs.is_document),
        )
        return [(path, ours) for path, ours in kinds if path is not None]

    def _put(self, path: Path, data: bytes, ours: outputs.Ours) -> None:
        store.put_file(path, data, lambda: outputs.refuse(path, ours, force=self.force))

    def check(self, inputs: Sequence[Path]) -> None:
        """Refuse what could not be written, or would replace an input, before anything is analyzed."""
        read = {os.path.realpath(path) for path in inputs}
        written: set[str] = set()
        for path, ours in self._ours():
            target = os.path.realpath(path)
            if target in read | written:
                what = "read" if target in read else "written"
                raise UsageError(f"{path.name}: is {what} already", next="name another file")
            written.add(target)
            outputs.refuse(path, ours, force=self.force)
            store.check_output(path)
        if self.charts is not None:
            if self.charts.suffix.lower() != ".png":
                raise UsageError(f"--charts {self.charts.name}: the picture is a PNG", next="name it F.png")
            from gpudebug.edges import charts

            charts.check()

    def write(
        self,
        answer: AnalyzeAnswer,
        detailed: dict[str, object],
        picture: AnalyzedFile,
        text: Callable[[AnalyzeAnswer], str],
    ) -> list[str]:
        """Write what was asked for; the names of the files. `charts` draws `picture`."""
        redact = Redactor(os.environ).redact
        if self.output is not None:
            body = text(with_texts(answer, scrubbed_record(answer.as_json(), redact)))
            self._put(self.output, f"{body}\n\n{outputs.TEXT_MARK}\n".encode(), outputs.is_text)
        if self.detailed is not None:
            whole = {"written_by": outputs.JSON_MARK, **dict(scrubbed_record(detailed, redact))}
            document = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
            self._put(
                self.detailed, document.encode("utf-8", "backslashreplace") + b"\n", outputs.is_document
            )
        if self.charts is not None:
            known = scrubbed_record(picture.detailed(), redact)
            drawn = picture.draw(with_texts(picture.answer, known), *(known[key] for key in picture.more))
            self._put(self.charts, drawn, outputs.is_picture)
        return [str(path) for path in self.paths]
