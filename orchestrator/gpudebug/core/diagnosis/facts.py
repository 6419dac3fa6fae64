"""Evidence of several runs of one command -> the facts that a diagnosis reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.answers.diagnosis import LayerResult
from gpudebug.core.catalogue.frameworks import StartedProgram
from gpudebug.core.command import command_line
from gpudebug.core.command.synonyms import Synonyms, long_name
from gpudebug.core.diagnosis import kinds, look_problem, ofprobe, ofstacks, ranks
from gpudebug.core.diagnosis.host_code import PLACED, host_code, worker_code
from gpudebug.core.diagnosis.layers import signals as layer_signals
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.ofprobe import finite, mean
from gpudebug.core.inside.stacks.shares import CodeLine
from gpudebug.core.records import SectionFigures, StacksEvidence
from gpudebug.core.samples.conditions import SLOWING, lost_share
from gpudebug.core.text import shell_words
from gpudebug.core.words import SignalValue, is_stand_in

Record = Mapping[str, Any]


def of_trace(trace: Record | None) -> dict[str, SignalValue | None]:
    """Signals of `Evidence.trace`, from its `analysis`; {} if there is none."""
    analysis = (trace or {}).get("analysis")
    if not analysis:
        return {}
    steps = analysis.get("steps") or {}
    copies = [c for c in analysis.get("memcpy") or () if "HtoD" in str(c.get("kind")).replace(" ", "")]
    pageable = math.fsum(c["count"] for c in copies if str(c.get("host_memory")).casefold() == "pageable")
    count = math.fsum(c["count"] for c in copies if c.get("host_memory"))
    return {
        "trace_busy_share": analysis.get("busy_share"),
        "kernels_per_step": analysis.get("kernels_per_step") or steps.get("kernels_per_step"),
        "mean_kernel_us": analysis.get("mean_kernel_us"),
        "memcpy_pageable_share": pageable / count if count else None,
        "sync_share": _waited(analysis.get("syncs"), analysis.get("span_s")),
        **_communication(analysis),
    }


def _waited(rows: Sequence[Record] | None, span: float | None) -> float | None:
    """Share of the traced time that the host waits for the device; unknown if calls are not separate.

    An operator that reads a value holds the call that waits, and other operators that read it.
    """
    if rows is None or not span:
        return None
    calls, operators = ([r["seconds"] for r in rows if r.get("kind") == k] for k in ("runtime", "operator"))
    if rows and not calls and not operators:
        return None
    return min(1.0, (math.fsum(calls) if calls else max(operators, default=0.0)) / span)


def _communication(analysis: Record) -> dict[str, SignalValue | None]:
    """Of the traced time what NCCL takes on a device in the mean, and what of it no computation hides."""
    nccl, span = analysis.get("nccl") or {}, analysis.get("span_s")
    of_all = span * max(1, len(analysis.get("devices") or ())) if span else None
    return {
        "nccl_share": _part(nccl.get("seconds"), of_all),
        "nccl_exposed_share": _part(nccl.get("exposed_s"), of_all),
        "nccl_overlap_share": nccl.get("overlapped_share"),
    }


def _part(seconds: float | None, of_all: float | None) -> float | None:
    return min(1.0, seconds / of_all) if seconds is not None and of_all else None


def of_others(
    util: float | None, reference: DiagnosisFacts | None, expected: Sequence[Record]
) -> dict[str, SignalValue | None]:
    """Against the reference (`util` is the workload's, in percent) and rows of `expectations.rows`."""
    best = reference.signals.get("gpu_util") if reference else None
    shares = [share for row in expected if (share := _share_of_expected(row)) is not None]
    return {
        "reference_gap_pp": float(best) - util if best is not None and util is not None else None,
        "expected_share": min(shares, default=None),
    }


def _share_of_expected(row: Record) -> float | None:
    """Of a rate its share of the least that is expected; of a time the most that is over what it took."""
    least, most = row["range"]
    measured = row.get("measured")
    if measured is None:
        return None
    if str(row["figure"]).startswith(("step_time", "latency", "section")):
        return most / measured if measured else None
    return measured / least if least else None


"""Reasons that no load of the training's own gives."""
_HELD_BACK = 0.95
_COMPUTING, _FULL = 0.6, 0.85
"""Of workers' time, and of the cores that others leave: workers that compute have no core left for more."""
_MOST_FOREIGN = 95.0
"""Percent of the cores: what others leave is not known more exactly."""
_CROWDED = 1.2
"""Threads that run or wait for a core, a core: whatever others take, no more than there are threads."""
_LONGEST_LINE = 160
_NO_LOG = "the log prints no steps, no loss and no data times"

Signals = dict[str, SignalValue]


_UNKNOWN = StartedProgram()


def facts_of(
    evidence: Sequence[Record],
    records: Sequence[Record] = (),
    program: StartedProgram = _UNKNOWN,
    *,
    reference: DiagnosisFacts | None = None,
    layers: Mapping[str, LayerResult] | None = None,
    trace: Record | None = None,
    expected: Sequence[Record] = (),
    judged_by: str | None = None,
) -> DiagnosisFacts:
    """Read the facts from evidence.json and run.json of a baseline's runs, of several runs the means.

    Without a framework of the `program`'s the one counts that the log gave away. `layers` are the results of
    layer tests, by layer, `trace` is `Evidence.trace` of a profiled run, `expected` are rows of
    `expectations.rows`, `judged_by` is `criteria.devices`.
    What is unknown is absent from `signals`, never 0.
    """
    stacks = ofstacks.together([e.get("stacks") for e in evidence])
    flags = flags_of(program.argv, _last(records, "synonyms", ()))
    printed = {_folded(k): v for k, v in _last(evidence, "printed", {}).items()}
    name = program.framework or _last(evidence, "framework", None)
    signals: Signals = {}
    _add(signals, _devices(evidence, records))
    _add(signals, ofprobe.device_signals(evidence))
    _add(signals, ofprobe.telling(evidence, judged_by))
    _add(signals, ofprobe.signals(evidence, finite(signals.get("cores"))))
    # Without an optimizer it is unknown where the parameters live.
    on_cpu = signals.get("trains_on", "cpu" if signals.get("device_stand_in") else None) == "cpu"
    words = [*words_of(program.argv), *program.names]
    kind = kinds.kind_of(name, flags, printed, stacks, evidence, words, program.kind)
    _add(signals, ofstacks.signals(stacks))
    _add(signals, ofstacks.reduces(stacks, on_cpu=on_cpu))
    _add(signals, _idles(signals))
    _add(signals, ofprobe.costs(signals, evidence))
    _add(signals, ofprobe.attached_signals(evidence, stacks, finite(signals.get("cores"))))
    _add(signals, {"eval_share": ofstacks.evaluates(stacks, kind, evidence, {**printed, **flags})})
    _add(signals, ofstacks.rollouts(stacks, kind))
    _add(signals, {"host_share": ofstacks.host_work(stacks, kind)})
    _add(signals, _log(evidence))
    _add(signals, of_trace(trace))
    _add(signals, of_others(finite(signals.get("gpu_util")), reference, expected))
    _add(signals, layer_signals(layers or {}))
    _add(signals, {"framework": name, "workload_kind": kind})
    places = _host_code(signals, stacks, on_cpu=on_cpu)
    of_ranks = ranks.finding(evidence)
    _add(signals, {"rank_wait_gap": ranks.gap_of(of_ranks)})
    return DiagnosisFacts(
        signals=signals,
        stacks=stacks,
        sections=_sections(evidence),
        flags=flags,
        printed=printed,
        framework=name,
        kind=kind,
        reference=reference,
        runs=tuple(str(e["run"]) for e in evidence if e.get("run")),
        run_s=mean([e.get("duration_s") for e in evidence]),
        steps_per_s=mean([e.get("steps_per_s") for e in evidence]),
        absent={**_absent(evidence, stacks), **_undecided(layers or {})},
        places=places,
        ranks=of_ranks,
    )


def _host_code(signals: Signals, stacks: StacksEvidence | None, *, on_cpu: bool) -> dict[str, CodeLine]:
    """Add what the host's own code takes of the time; return the lines. That of loader workers counts where
    more of them would find no core: it holds up batches then, and takes cores from the training."""
    host, worker = (
        (host_code(stacks.training, on_cpu=on_cpu), worker_code(stacks.workers)) if stacks else (None, None)
    )
    wait, busy = finite(signals.get("data_wait_share")), finite(signals.get("cores_busy_share"))
    runs = finite(signals.get("worker_running_share"))
    if runs is not None and busy is not None:
        signals["workers_lack_cores"] = runs >= _COMPUTING and busy >= _FULL
    if worker is not None and wait is not None and signals.get("workers_lack_cores"):
        own, all_ = finite(signals.get("main_cpu_cores")), finite(signals.get("cpu_cores"))
        theirs = 1.0 - min(1.0, own / all_) if own is not None and all_ else 0.0
        host = max(
            host or (0.0, worker[1]), (worker[0] * max(wait, theirs), worker[1]), key=lambda one: one[0]
        )
    if host is None:
        return {}
    signals[PLACED] = host[0]
    slowing = {"slowing_share": host[1]} if signals.get("slowing_part") == "other" else {}
    return {PLACED: host[1], **slowing}


def flags_of(argv: Sequence[str], synonyms: Synonyms = ()) -> dict[str, str | bool]:
    """The options of a command by folded long name; of a shell's, those in its text. True for a bare one."""
    options = command_line.program_options(_words(argv))
    names = {o: _folded(command_line.bare_name(long_name(o.name, synonyms))) for o in options}
    return {name: True if o.value is None else o.value for o, name in names.items()}


def words_of(argv: Sequence[str]) -> list[str]:
    """The words of a command that are no options and no values: its program, script and subcommands."""
    words = _words(argv)
    covered = {i for o in command_line.options(words) for i in range(o.start, o.stop)}
    return [word for i, word in enumerate(words) if i not in covered]


def _words(argv: Sequence[str]) -> Sequence[str]:
    if not command_line.is_shell(argv):
        return argv
    return [word.value for word in shell_words.split(argv[2], strict=False)]


def _folded(name: str) -> str:
    return command_line.bare_name(name).replace("-", "_")


def _add(signals: Signals, found: Mapping[str, SignalValue | None]) -> None:
    signals.update({name: value for name, value in found.items() if value is not None})


def _last(evidence: Sequence[Record], key: str, otherwise: Any) -> Any:
    return next((e[key] for e in reversed(evidence) if e.get(key)), otherwise)


def _devices(evidence: Sequence[Record], records: Sequence[Record]) -> dict[str, SignalValue | None]:
    """What samples and host tell. Memory of the stand-in is the host's, of which resident memory is."""
    util = mean([e.get("utilisation") for e in evidence])
    found = [c for e in evidence if (c := e.get("conditions"))]
    known = {key: mean([c.get(key) for c in found]) for key in ("read_mb_s", "write_mb_s", "cpu_cores")}
    waits = mean([c.get("cpu_wait") for c in found if not any(e.get("probe") for e in evidence)])
    usable = mean([c.get("cores") for c in found])
    used = known["cpu_cores"]
    foreign = mean([c.get("foreign_cpu") for c in found])
    ready = (used + waits / 100) / usable if usable and used is not None and waits is not None else None
    left = usable * (1 - min(_MOST_FOREIGN, foreign or 0.0) / 100) if usable else None
    devices = [d for record in records for d in record.get("devices") or ()]
    uuids = {d.get("uuid") for d in (*devices, *(d for e in evidence for d in e.get("devices") or ()))}
    stand_in = any(map(is_stand_in, uuids)) if uuids else None
    total = mean([d.get("memory_total_mb") for d in devices])
    held = mean([e.get("peak_rss_mb" if stand_in else "peak_device_mb") for e in evidence])
    share = held / total if held is not None and total else None
    quota = mean([record.get("cpu_quota") for record in records])
    return {
        "gpu_util": util,
        "device_stand_in": stand_in,
        "device_idle_share": None if util is None else min(1.0, max(0.0, 1 - util / 100)),
        "mem_used_share": None if stand_in else share,
        "peak_rss_share": share if stand_in else None,
        "throttled_share": _throttled(found),
        "foreign_procs": max(
            (n for c in found if (n := finite(c.get("foreign_procs"))) is not None), default=None
        ),
        "foreign_cpu": foreign,
        "cpu_lost_share": lost_share(mean([c.get("cpu_stolen") for c in found]), used),
        **known,
        "cores": usable,
        "ready_over_cores": ready if ready is not None and ready > _CROWDED else None,
        "cores_busy_share": min(1.0, used / left) if used is not None and left else None,
        "cpu_quota_throttled": used >= _HELD_BACK * quota if used is not None and quota else None,
    }


def _idles(signals: Signals) -> dict[str, SignalValue | None]:
    """Return the stand-in's idle share without the time in which the training waited for a core: a CPU that
    computes something else does not idle."""
    idle, starved = finite(signals.get("device_idle_share")), finite(signals.get("starved_share"))
    if not signals.get("device_stand_in") or idle is None or starved is None:
        return {}
    return {"device_idle_share": max(0.0, idle - starved)}


def _throttled(conditions: Sequence[Record]) -> float | None:
    known = [c["throttle"] for c in conditions if c.get("throttle") is not None]
    return mean([max((t.get(name, 0.0) for name in SLOWING), default=0.0) for t in known])


def _log(evidence: Sequence[Record]) -> dict[str, SignalValue | None]:
    data, update = (mean([e.get(key) for e in evidence]) for key in ("data_s", "update_s"))
    step = data + update if data is not None and update is not None else None
    failure = _last(evidence, "failure", None)
    return {
        "log_data_share": data / step if data is not None and step else None,
        "log_update_share": update / step if update is not None and step else None,
        "loss_points": mean([(e.get("loss") or {}).get("points") for e in evidence]),
        "latency_s": mean([e.get("latency_p50_s") for e in evidence]),
        "failure": failure.get("kind") if failure else None,
        "failure_text": _last_line(failure),
    }


def _last_line(failure: Record | None) -> str | None:
    """Return the line that says most of a failure: the last of those that are quoted."""
    lines = (failure or {}).get("lines") or ()
    return str(lines[-1]).strip()[:_LONGEST_LINE] or None if lines else None


def _sections(evidence: Sequence[Record]) -> tuple[SectionFigures, ...]:
    """Return the last run's: their shares differ little from run to run."""
    report = _last(evidence, "sections", None)
    return tuple(SectionFigures.model_validate(one) for one in report.get("sections", ())) if report else ()


def _absent(evidence: Sequence[Record], stacks: StacksEvidence | None) -> dict[str, str]:
    """Say why each missing source of evidence is missing."""
    absent: dict[str, str] = {}
    if stacks is not None and stacks.training is None and stacks.notes:
        absent["stacks"] = "; ".join(stacks.notes)
    if not any(e.get("probe") for e in evidence):
        absent["probe"] = _last(evidence, "probe_reason", "no run has probe data")
    if stacks is None or stacks.training is None:
        absent.setdefault("stacks", absent.get("probe", "no stack of the training thread was recorded"))
    if not any(_logged(e) for e in evidence):
        absent["log"] = _NO_LOG
    if not any(finite(e.get("utilisation")) is not None for e in evidence):
        reasons = [e.get("window_reason") for e in evidence]
        reasons += [d.get("reason") for e in evidence for d in e.get("devices") or ()]
        absent["device"] = next((str(r) for r in reasons if r), "no device was read")
    if few := look_problem.too_few(evidence):
        absent["steps"] = f"{few}: make the runs longer"
    return absent


def _undecided(layers: Mapping[str, LayerResult]) -> dict[str, str]:
    """Of layer tests that were made and could not tell, why."""
    return {
        f"layer_{name}": "; ".join(result.notes) or result.means
        for name, result in layers.items()
        if result.ratio is None
    }


def _logged(e: Record) -> bool:
    figures = (e.get("data_s"), e.get("latency_p50_s"), (e.get("loss") or {}).get("points"))
    return any(figures) or e.get("steps_by") in ("arrival", "printed")
