"""The summary that `status` shows: written after each cycle, and proven by `verify`."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudebug import __version__
from gpudebug.core.errors import GpudebugError
from gpudebug.core.redaction.records import scrubbed_record
from gpudebug.core.text.values import short_digest
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.edges.host import now
from gpudebug.edges.store.kept import order_file
from gpudebug.edges.store.summary import Summary, as_they_are, encoded, path_of, read_summary, run_names
from gpudebug.engine.campaign.campaign import Entries, History, Loaded, Setup
from gpudebug.engine.campaign.files import Written, workload_of
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.measured_code import apart, code_for
from gpudebug.engine.campaign.said import said_of
from gpudebug.engine.diagnosis.order import record_order
from gpudebug.engine.status.answer import answer_of
from gpudebug.engine.status.recorded import (
    FORMAT,
    code_in,
    holds,
    names_digest,
    program_of,
    progress_of,
)

if TYPE_CHECKING:
    from gpudebug.engine.verify.findings import Findings

# What was written so shortly before may have the time of a change that is still to come.
_PAUSE_S = 0.02
_SESSION = "a-session"
_AGES = ("age_s", "recorded")


def record(directory: Path, session: str | None, by: str) -> None:
    """Record what `status` shows of a campaign as it is now: the order of what waits, and the summary.

    `by` is the command that asks. If this fails, what the command did stays, and `status` reads the evidence.
    """
    with suppress(GpudebugError, OSError):
        time.sleep(_PAUSE_S)
        began = time.time_ns()
        loaded = load(directory, session)
        record_order(loaded, by)
        _write(loaded if session is None else load(directory), began)


def _write(loaded: Loaded, began: int) -> None:
    """Write the summary, unless something changed since the campaign was read."""
    root, campaign = loaded.setup.workspace.root, loaded.setup.config.campaign
    if not loaded.setup.workspace.runs.is_dir() or loaded.setup.workspace.runs.is_symlink():
        return
    head, files, rows = _made(loaded)
    watched = {*files, store.CONFIG, str(loaded.setup.progress_path)}
    watched.discard(str(order_file(loaded.setup.workspace)))
    if any(_changed_since(root / name, began) for name in watched):
        return
    path = path_of(root, campaign)
    store.make_folder(path.parent)
    store.copy_into(path, encoded(head, files, rows))


def _changed_since(path: Path, moment: int) -> bool:
    try:
        return path.stat().st_ctime_ns >= moment
    except OSError:
        return False


def _made(loaded: Loaded) -> tuple[dict[str, Any], list[str], list[dict[str, Any]]]:
    """Return the head, the paths and the rows of a summary."""
    root = loaded.setup.workspace.root
    answer = dict(scrubbed_record(answer_of(loaded, running=False).as_json(), loaded.setup.workspace.scrub))
    rows = answer.pop("hypotheses")
    listed = [row for row in rows if row["number"] in set(answer["shown"])]
    others = Counter(row["status"] for row in rows if row["number"] not in set(answer["shown"]))
    files = [*_files(loaded.setup, loaded.entries, loaded.history, listed)]
    excluded = [str(path) for path in apart(loaded.setup.workspace, loaded.setup.progress_path)]
    head = {
        "format": FORMAT,
        "gpudebug": __version__,
        "when": now(),
        "root": str(root),
        "alike": _alike(loaded),
        "config": short_digest(store.read_file(loaded.setup.workspace.config, follow=True)),
        "progress": progress_of(loaded.setup.progress_path),
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "runs": names_digest(root),
        "files": as_they_are(root, files),
        "programs": [_program(loaded.setup, role) for role in loaded.setup.roles],
        "apart": excluded,
        "code": code_in(loaded.setup.checkout),
        "answer": answer,
        "listed": listed,
        "rest": dict(others),
    }
    return head, files, rows


def _files(setup: Setup, entries: Entries, history: History, listed: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the paths that the answer was made of, below the campaign's folder or absolute."""
    for name in run_names(setup.workspace.root):
        yield f"runs/{name}"
        yield f"runs/{name}/run.json"
    judged = {h.runs[-1] for h in entries.document.hypotheses if h.runs}.union(history.judged)
    for name in sorted(judged):
        yield f"runs/{name}/verdict.json"
        yield f"runs/{name}/manifest.json"
    shown = {name for row in listed for name in row["runs"]}
    if entries.recorded:
        shown.update(name for name, r in history.records.items() if r.get("paired"))
        shown.update(name for h in entries.recorded for name in h.runs)
    for name in sorted(shown.union(*(b.runs for b in history.baselines.values()))):
        for file in ("manifest.json", "evidence.json", "sampler.json"):
            yield f"runs/{name}/{file}"
    yield str(order_file(setup.workspace))
    yield str(setup.compared.file)
    yield str(entries.acceptances.file)
    yield str(entries.acceptances.file.parent)
    yield str(said_of(setup.workspace.root, setup.config.campaign, setup.checkout).file)
    for entry in entries.document.hypotheses:
        change = entries.change_of(entry) if "--patch" in (entry.intervention or "") else None
        if change is not None and change.patch is not None:
            yield change.patch


def _program(setup: Setup, role: str) -> list[str | None]:
    workload = workload_of(setup.config, role)
    assert workload is not None
    return program_of(setup.workspace.root, workload.argv()[0], workload.cwd, workload.env.get("PATH"))


def _alike(loaded: Loaded) -> bool:
    """Tell whether a session is shown what a person is: it measures the same code and holds no hypothesis."""
    waits = any(h.status is Status.TESTING for h in loaded.entries.document.hypotheses)
    orders = (
        loaded.entries.acceptances.order(h, _SESSION) == loaded.entries.order(h)
        for h in loaded.entries.document.hypotheses
    )
    return not waits and all(orders) and code_for(loaded, _SESSION).digest == loaded.code.digest


def check_summary(written: Written, findings: Findings) -> None:
    """Name a summary that `status` would show and that does not follow from the evidence."""
    from gpudebug.engine.verify.findings import Finding

    root = written.workspace.root
    path = path_of(root, written.config.campaign)
    found = read_summary(path)
    if found is None or not _shown(root, found):
        return
    head, _, rows = _made(load(root))
    differing = sorted({*_differing(head["answer"], found.head["answer"]), *_rows_differing(rows, found)})
    differing += [key for key in ("listed", "rest") if _plain(head[key]) != _plain(found.head.get(key))]
    for key in differing:
        why = "`status` shows what does not follow from the evidence; gpudebug next writes it again"
        findings.differs(Finding(f"summary: {key}", found=found.head["when"], file=path, why=why))


def _shown(root: Path, found: Summary) -> bool:
    try:
        return holds(root, found, None)
    except (OSError, GpudebugError, LookupError, TypeError, ValueError, AttributeError):
        return False


def _differing(wanted: dict[str, object], found: Any) -> list[str]:
    if not isinstance(found, dict):
        return ["answer"]
    keys = {*wanted, *found}
    return [key for key in keys if _plain(wanted.get(key)) != _plain(found.get(key))]


def _rows_differing(wanted: list[dict[str, object]], found: Summary) -> list[str]:
    try:
        rows = found.every_row()
    except ValueError:
        return ["hypotheses"]
    return [] if _plain(wanted) == _plain(rows) else ["hypotheses"]


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it, without what is another one each second."""
    if isinstance(value, dict):
        return {str(key): _plain(v) for key, v in value.items() if key not in _AGES}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
