"""The GPUs of the other nodes of a job that a run spans: found before it, and sampled there beside it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gpudebug.core.cluster.jobs import InsideJob, NodeStep
from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside.probe.spans import MOST_NODES, ClockTouch, clock_offset
from gpudebug.core.records import Counted, DeviceInfo, RunNode
from gpudebug.core.samples.conditions import LATEST_ROW_S, LATEST_ROW_SHARE
from gpudebug.core.words import GPU
from gpudebug.edges import clusters, launcher, opener, store
from gpudebug.edges.clusters.steps import RunningStep, running
from gpudebug.edges.devices.visible import ORDER, VARIABLE
from gpudebug.edges.launcher import Tick
from gpudebug.edges.sampler import onnode
from gpudebug.edges.store import jobfiles
from gpudebug.engine.run.files import Files

if TYPE_CHECKING:
    from gpudebug.core.config import RunnerSettings

READY_S = 20.0
"""As long as the first node's sampler may take to be ready."""
ENDS_S = 5.0
LAST_WORD_S = 30.0
"""The last rows are waited for until they are on the file system of all nodes."""
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_SILENT = "its sampler did not answer"
_CUT_OFF = "its sampler ended early"
Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class OtherNodes:
    """The other nodes of a job: `devices` are the samplers' specifications by node, `step` runs a program on
    these nodes, `unsampled` says why the devices of another one are unknown."""

    devices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    step: NodeStep | None = None
    unsampled: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FoundNodes:
    """The devices of all nodes, the first one's first, how the others' are sampled, and remarks."""

    devices: tuple[DeviceInfo, ...]
    others: OtherNodes | None = None
    notes: tuple[str, ...] = ()


def find_nodes(
    devices: Sequence[DeviceInfo],
    runner: RunnerSettings | None,
    env: Mapping[str, str],
    records: Iterable[Mapping[str, Any]] = (),
) -> FoundNodes:
    """Ask the other nodes of the allocation around us for their GPUs; of one node nothing changes.

    `env` is the training's: what it says of visible GPUs holds for its steps, unless the cluster sets that.
    The CPU stand-in is the first node's, and a recording is what it is. Takes a second or two. A node that
    is silent has the devices that it had in the last of the `records` of runs in this allocation, so that an
    answer that comes late makes no other devices; one without is asked twice.
    """
    job, kinds = clusters.inside(), {d.can for d in devices}
    if job is None or len(job.nodes) < 2:
        return FoundNodes(tuple(devices))
    if not (kinds and all(kind.is_gpu for kind in kinds)):
        stand_in = f"the CPU stand-in measures node {job.node} alone: judge by steps_per_s or throughput"
        shared = any(kind.shares_cores for kind in kinds)
        return FoundNodes(tuple(devices), notes=(stand_in,) if shared else ())
    own = tuple(d.model_copy(update={"node": job.node}) for d in devices)
    asked, unsampled = _asked(job)
    visible = {name: env[name] for name in (VARIABLE, ORDER) if name in env}
    earlier, step = _earlier(job, records), None
    try:
        found = _found(asked, own, lambda nodes: _step(runner, nodes, visible), unsampled, earlier)
        kept = {node: earlier[node] for node in unsampled if node in earlier}
        nodes = tuple(node for node in asked if node in found or node in kept)
        step = _step(runner, nodes, visible) if nodes else None
    except (GpudebugError, OSError) as e:
        found, kept = {}, {node: earlier[node] for node in asked if node in earlier}
        unsampled |= dict.fromkeys(asked, _reason(e))
    notes = tuple(
        f"the devices of node {node} are unknown: {why}"
        if node not in kept
        else f"node {node} does not say its devices ({why}): taken to be those of run {kept[node][0]}"
        for node, why in unsampled.items()
    )
    if step is not None:
        # Their samplers are asked all the same, and say by themselves what is wrong.
        unsampled = {node: why for node, why in unsampled.items() if node not in kept}
    all_of = {**found, **{node: again for node, (_, again) in kept.items()}}
    more = tuple(device for node in asked for device in all_of.get(node, ()))
    specs = {
        node: {"kind": GPU.name, "uuids": [d.uuid for d in all_of[node]]} for node in asked if node in all_of
    }
    return FoundNodes((*own, *more), OtherNodes(specs, step, unsampled), notes)


def _reason(error: GpudebugError | OSError) -> str:
    return error.message if isinstance(error, GpudebugError) else str(error.strerror or error)


def _earlier(job: InsideJob, records: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, list[DeviceInfo]]]:
    """Return the devices of each other node in the newest run of this allocation that knew them, with that
    run's name. `records` are as run.json has them, oldest first; one that is not sound tells nothing."""
    found: dict[str, tuple[str, list[DeviceInfo]]] = {}
    for record in records:
        node = record.get("node") or {}
        # Another allocation of the same nodes may have other GPUs.
        if (node.get("name"), node.get("allocation")) != (job.node, job.allocation):
            continue
        devices: dict[str, list[DeviceInfo]] = {}
        try:
            known = [DeviceInfo.model_validate(device) for device in record.get("devices", ())]
        except (TypeError, ValidationError):
            continue
        for device in known:
            if device.can.is_gpu and device.node not in (None, job.node):
                devices.setdefault(str(device.node), []).append(device.model_copy(update={"processes": ()}))
        found |= {name: (str(record.get("name")), those) for name, those in devices.items()}
    return found


def _found(
    asked: tuple[str, ...],
    own: Sequence[DeviceInfo],
    step_on: Callable[[tuple[str, ...]], NodeStep],
    unsampled: dict[str, str],
    known_before: Collection[str],
) -> dict[str, list[DeviceInfo]]:
    """Return the devices of each node that answers; `unsampled` gets why others do not. Those that are not
    `known_before` are asked twice."""
    found: dict[str, list[DeviceInfo]] = {}
    answers: dict[str, dict[str, Any]] = {}
    for to_ask in (asked, tuple(node for node in asked if node not in known_before)):
        # A second time, since a controller may be busy or a node slow once.
        if silent := tuple(node for node in to_ask if node not in answers):
            more, why = _answers(step_on(silent), silent)
            answers |= more
            unsampled |= {node: why for node in silent if node not in more}
    for node in answers:
        unsampled.pop(node, None)
    known = {d.uuid for d in own}
    for node, answer in answers.items():
        try:
            # Two nodes of one host have the same GPUs.
            new = [d for d in _devices(answer, node) if d.uuid not in known]
        except (KeyError, TypeError, ValidationError):
            unsampled[node] = _problem(answer)
            continue
        known |= {d.uuid for d in new}
        if new:
            found[node] = new
    return found


def _step(runner: RunnerSettings | None, nodes: tuple[str, ...], visible: Mapping[str, str]) -> NodeStep:
    step = clusters.beside(runner, nodes)
    return replace(step, env=tuple({**dict(step.env), **visible}.items()))


def first_alone() -> tuple[str, ...]:
    """Return a remark for a run whose other nodes are not sampled; none in an allocation of one node."""
    job = clusters.inside()
    others = [node for node in job.nodes if node != job.node] if job is not None else []
    if job is None or not others:
        return ()
    return (f"outside of a campaign node {job.node} alone is sampled, not {', '.join(others)}",)


def _asked(job: InsideJob) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the other nodes, and why some are left out."""
    others = [node for node in job.nodes if node != job.node]
    plain = [node for node in others if _PLAIN.fullmatch(node)]
    odd = {node: "its name cannot be one of a file" for node in others if node not in plain}
    more = dict.fromkeys(plain[MOST_NODES:], f"the job has more than {MOST_NODES} other nodes")
    return tuple(plain[:MOST_NODES]), odd | more


def _answers(step: NodeStep, nodes: Sequence[str]) -> tuple[dict[str, dict[str, object]], str]:
    """Return what each node answered to the question for its devices, and why others did not."""
    with running(step, onnode.node_command()) as asked:
        asked.tell({"variable": step.variable, "setting": GPU.name})
        asked.wait(lambda messages: {m["node"] for m in messages} >= set(nodes), READY_S)
        found = {m["node"]: m for m in asked.end(ENDS_S)}
        return {node: found[node] for node in nodes if node in found}, asked.why or _SILENT


def _devices(answer: Mapping[str, Any], node: str) -> list[DeviceInfo]:
    return [DeviceInfo(**{**device, "node": node}) for device in answer["devices"]]


def _problem(answer: Mapping[str, Any]) -> str:
    error = answer.get("error")
    return str(error["message"]) if isinstance(error, dict) and "message" in error else _SILENT


class NodeSamplers:
    """The samplers of a run's other nodes. Nothing that becomes of them ends or fails the run.

    Once it is over `counted` is what each counted of its file, by the file's name, `unsampled` why the
    devices of a node are unknown, and `clocks` what a node's clock was ahead of the first one's in seconds.
    `silent` are the nodes that were sampled and have said no last word.
    """

    def __init__(self, files: Files) -> None:
        self.counted: dict[str, Any] = {}
        self.unsampled: dict[str, str] = {}
        self.clocks: dict[str, float] = {}
        self.silent: frozenset[str] = frozenset()
        self._files = files.beside
        self._running: RunningStep | None = None
        self._begun = False

    def start(self, step: RunningStep, others: OtherNodes, order: Mapping[str, Any]) -> None:
        """Give them their order, what all are told and each its own, and wait until they are ready."""
        self._running = step
        places = {node: str(path) for node, path in self._files.items()}
        for path in self._files.values():
            # Made here, so that a node with an older list of the folder does not miss it.
            store.start_file(path)
        base = _touched(next(iter(places.values())))
        nodes = {node: {"csv": place, "device": others.devices[node]} for node, place in places.items()}
        step.tell({**order, "nodes": nodes})
        messages = step.wait(lambda found: {m["node"] for m in found} >= set(nodes), READY_S)
        answers = {m["node"]: m for m in messages}
        for node in nodes:
            clock = answers.get(node, {}).get("clock")
            ahead = clock_offset(base, ClockTouch(*clock)) if clock is not None else None
            if ahead is not None:
                self.clocks[node] = round(ahead, 6)
            elif clock is not None:
                self.unsampled[node] = "its clock could not be compared by the shared folder"
            else:
                self.unsampled[node] = _problem(answers[node]) if node in answers else step.why or _SILENT

    def seeing(self, observe: Callable[[Tick], str | None]) -> Callable[[Tick], str | None]:
        """`observe`, which is called soon after the launch: from then on it is known when that was."""

        def both(tick: Tick) -> str | None:
            if self._running is not None and not self._begun:
                self._begun = True
                t0 = time.monotonic() - tick.elapsed
                self._running.tell({"t0": {node: t0 + ahead for node, ahead in self.clocks.items()}})
            return observe(tick)

        return both

    def end(self, lasted: float, *, hurried: bool = False) -> None:
        """The run is over after `lasted` seconds: they write their last rows and go.

        An interrupt meanwhile takes nothing from the run, and has effect before the next one.
        """
        if self._running is None:
            return
        with launcher.holding_interrupts() as pressed:
            why = _CUT_OFF if self._begun else "the run ended before it began"
            try:
                messages = self._running.end(LAST_WORD_S, lambda: hurried or pressed.count > 0)
                self._take(messages)
                ended = {m["node"] for m in messages if "notes" in m or "error" in m}
                self.silent = frozenset(self.clocks) - ended if self._begun else frozenset()
                for node, path in self._files.items():
                    if path.name not in self.counted and node in self.clocks and node not in self.unsampled:
                        self._take_counts([m for m in messages if m["node"] == node], path, lasted)
            except (GpudebugError, OSError) as e:
                why = _reason(e)
            for node, path in self._files.items():
                if path.name not in self.counted:
                    self.unsampled.setdefault(node, why)

    def _take(self, messages: Messages) -> None:
        """Each one's last word."""
        for message in messages:
            node, notes = message["node"], message.get("notes")
            if node in self._files and isinstance(notes, dict) and isinstance(message.get("counted"), dict):
                self.counted[self._files[node].name] = message["counted"]
                if notes.get("lost") is not None:
                    self.unsampled[node] = str(notes["lost"])
            elif node in self.clocks and "error" in message:
                self.unsampled[node] = _problem(message)

    def _take_counts(self, messages: Messages, path: Path, lasted: float) -> None:
        """A file whose sampler said no last word, up to the last count if that is near enough to the end."""
        size = jobfiles.size_of(path)
        for message in reversed(messages):
            if size is None or not isinstance(message.get("counted"), dict):
                continue
            if lasted - float(message["elapsed"]) > LATEST_ROW_S + LATEST_ROW_SHARE * lasted:
                return
            counted = Counted.model_validate(message["counted"])
            if counted.bytes <= size:
                if jobfiles.head_digest(path, counted.bytes) == counted.sha256:
                    # A file of its own: that sampler may still write to the other one.
                    store.copy_into(path, store.read_head(path, counted.bytes))
                self.counted[path.name] = message["counted"]
                return

    def lose(self, short: Mapping[str, str]) -> None:
        """Of the files with these names not all is there that was counted, with the reason."""
        for node, path in self._files.items():
            if path.name in short:
                del self.counted[path.name]
                self.unsampled[node] = f"its samples are not all there: {short[path.name]}"


@contextmanager
def sampled_beside(
    others: OtherNodes | None, files: Files, order: Mapping[str, Any]
) -> Iterator[NodeSamplers]:
    """Have the other nodes' devices sampled for as long as the block lasts; start nothing without any."""
    samplers = NodeSamplers(files)
    with ExitStack() as stack:
        if others is not None and others.step is not None and files.nodes:
            try:
                step = stack.enter_context(running(others.step, onnode.node_command()))
                samplers.start(step, others, {**order, "variable": others.step.variable})
            except (GpudebugError, OSError) as e:
                samplers.unsampled = dict.fromkeys(files.nodes, _reason(e))
        yield samplers


def with_nodes(
    node: RunNode | None, others: OtherNodes | None, samplers: NodeSamplers | None
) -> RunNode | None:
    """Return the run's node with what is known of the others."""
    if node is None or others is None:
        return node
    unsampled = {**others.unsampled, **(samplers.unsampled if samplers is not None else {})}
    return node.model_copy(
        update={"unsampled": unsampled, "clocks": samplers.clocks if samplers is not None else {}}
    )


def _touched(path: str) -> ClockTouch:
    fd = opener.descriptor(path, os.O_WRONLY)
    try:
        return ClockTouch(*onnode.clock(fd))
    finally:
        os.close(fd)
