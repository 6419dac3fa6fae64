"""The report of one run, of a campaign or of none: what it showed, and the causes that explain it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpudebug import __version__
from gpudebug.core.answers.answer import plain
from gpudebug.core.answers.diagnosis import DiagnoseAnswer
from gpudebug.core.diagnosis.look_problem import disturbances, is_blind, problem_of
from gpudebug.core.diagnosis.ofprobe import step_parts
from gpudebug.core.errors import UsageError
from gpudebug.core.records import Evidence
from gpudebug.core.redaction.records import scrubbed_record
from gpudebug.core.redaction.redact import Redactor
from gpudebug.core.statistics import numbers
from gpudebug.core.text.shown import inline, verbatim
from gpudebug.edges import store, templates
from gpudebug.edges.host import now
from gpudebug.engine.campaign.files import REPLAYED_NOTE
from gpudebug.engine.diagnosis.diagnose import diagnose, place_of
from gpudebug.engine.diagnosis.why import log_end
from gpudebug.engine.report.data import FORMAT, LOGS, readable
from gpudebug.engine.report.markdown import on_paper, sections, setup
from gpudebug.engine.report.pageparts import ceiling
from gpudebug.engine.report.runs import brief, detail, log_size, surroundings, whole
from gpudebug.engine.run.devices import devices_in

LEAST = 0.03
"""A cause that is less probable draws the eye away, as in `why`."""
CAUSES = 5
_FACTS = 200

Data = Mapping[str, Any]


def run_folder(directory: Path, run: str) -> Path:
    """Return the folder of RUN, a run's name in the campaign or a folder. UsageError if it is none."""
    found = place_of(directory, store.find_root(directory), run)
    if found is None or not (found / "run.json").is_file():
        why = "is not a run here" if found is None else "is not a run folder"
        raise UsageError(f"{run} {why}", next="name a folder of runs/, or the one that gpudebug why printed")
    return found


def gather_run(directory: Path, folder: Path, doing: Callable[[str], None] = lambda text: None) -> Data:
    """Return the report's data of the run in `folder`, made as `data.gather` makes a campaign's.

    GpudebugError if the run is not finished or its records are not what gpudebug writes.
    """
    run = whole(store.RunFolder(folder, lambda text: text))
    notes: list[str] = []
    doing(f"reading {folder.name}")
    series = detail(run, notes, with_log=log_size(run) <= LOGS)
    diagnosed = diagnose(directory, str(folder))
    problem = problem_of(run.record, run.evidence, log_end(run.folder))
    blind = is_blind(run.evidence)
    data = {
        "format": FORMAT,
        "gpudebug": __version__,
        "made": now(),
        "name": run.folder.name,
        "command": run.record.command,
        "campaign": run.record.campaign,
        "headline": headline(run.evidence, diagnosed),
        "kind": diagnosed.kind,
        "framework": diagnosed.framework,
        "stand_in": bool(diagnosed.stand_in),
        "replayed": REPLAYED_NOTE if run.record.replayed else None,
        "devices": [plain(device) for device in devices_in(run.evidence, run.record.devices)],
        "step": plain(step_parts(run.evidence)),
        "processes": _processes(run.evidence),
        "abstains": problem.text if problem and blind else diagnosed.abstains,
        "gates": [plain(gate) for gate in diagnosed.gates],
        "causes": [] if blind or diagnosed.abstains else _causes(diagnosed),
        "missing": [plain(row) for row in diagnosed.missing],
        "runs": {run.folder.name: {**brief(run), **series}},
        "machine": surroundings(run),
        "notes": [
            *([problem.text] if problem and not blind else []),
            *disturbances(run.evidence),
            *notes,
        ],
        "next_command": diagnosed.next_command,
    }
    found: Data = readable(scrubbed_record(data, Redactor().redact))
    return found


def headline(evidence: Evidence, diagnosed: DiagnoseAnswer) -> str:
    """Return what was run, for how long, and how busy it kept the device."""
    kind = diagnosed.framework or (diagnosed.kind if diagnosed.kind != "other" else "a program")
    took = numbers.duration(evidence.duration_s) if evidence.duration_s is not None else numbers.UNKNOWN
    device = "the CPU stand-in" if diagnosed.stand_in else "the device"
    if evidence.utilisation is None:
        return f"{took} of {kind}; how busy {device} was is unknown."
    return f"{took} of {kind}: {device} was busy {numbers.percent(evidence.utilisation)} of the time."


def _processes(evidence: Evidence) -> list[dict[str, object]]:
    seen = evidence.attached
    return [one.model_dump(mode="json") for one in seen.processes] if seen is not None else []


def _causes(diagnosed: DiagnoseAnswer) -> list[dict[str, object]]:
    shown = [cause for cause in diagnosed.causes if cause.probability >= LEAST][:CAUSES]
    return [
        {
            "id": cause.id,
            "title": cause.title,
            "probability": cause.probability,
            "ceiling_pp": cause.ceiling_pp,
            "ceiling_ratio": cause.ceiling_ratio,
            "for": list(cause.for_),
            "against": list(cause.against),
            "change": cause.hypothesis.change,
            "instructions": cause.hypothesis.instructions,
        }
        for cause in shown
    ]


def summary_of_run(data: Data) -> str:
    """Return the run as GitHub-flavoured Markdown; free text makes no markup, no mention and no link."""
    step = data["step"]
    return templates.render(
        "look.md.j2",
        run=inline(data["name"]),
        command=on_paper(data["command"]),
        headline=inline(data["headline"]),
        replayed=data["replayed"],
        notes=[inline(note.rstrip(".")) for note in data["notes"]],
        took=numbers.of_step(step["time_s"], step["median_s"], step["pauses"]),
        shares=", ".join(f"{k.replace('_', ' ')} {100 * v:.0f}%" for k, v in step["shares"].items()),
        places=[_place(place) for place in step["places"]],
        abstains=inline(data["abstains"]) if data["abstains"] else None,
        causes=[_cause(cause) for cause in data["causes"]],
        environment=[
            ("Device", inline(", ".join(d["name"] for d in data["devices"]) or numbers.UNKNOWN)),
            *(("GPUs", inline(line)) for run in data["runs"].values() for line in run.get("across", ())),
            *setup(data["machine"]),
        ],
        sections=sections(data["machine"]),
        next_command=verbatim(data["next_command"]),
        version=data["gpudebug"],
        made=data["made"][:10],
    )


def _place(place: Data) -> dict[str, str]:
    where = inline(f"{place['site']} {place['function']}")
    return {"share": f"{100 * place['share']:.0f}%", "state": place["state"], "where": where}


def _cause(cause: Data) -> dict[str, str]:
    return {
        "id": cause["id"],
        "title": inline(cause["title"], 120),
        "probability": f"{100 * cause['probability']:.0f}%",
        "ceiling": ceiling(cause),
        "facts": inline("; ".join(cause["for"]) or "nothing", _FACTS),
        "change": verbatim(cause["change"] or "", 160),
        "instructions": inline(cause["instructions"] or numbers.UNKNOWN, _FACTS),
    }
