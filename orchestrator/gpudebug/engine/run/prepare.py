"""From a loaded campaign to what a run needs: its job, its device, its criteria."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpudebug.core.catalogue import frameworks
from gpudebug.core.change.intervention import SERVER
from gpudebug.core.cluster.jobs import traps
from gpudebug.core.command.command_line import Option
from gpudebug.core.config import Workload
from gpudebug.core.errors import DeviceError, LaunchError, StoreError
from gpudebug.core.records import DeviceInfo, Evidence, RunRecord
from gpudebug.core.samples.window import least_pooled
from gpudebug.core.words import device_kind
from gpudebug.edges import clusters, host, launcher, store
from gpudebug.edges.host import now
from gpudebug.engine.campaign import acceptance, settings
from gpudebug.engine.campaign.allocations import living_jobs
from gpudebug.engine.campaign.campaign import Loaded, Setup
from gpudebug.engine.campaign.files import find, record_of, training_environment
from gpudebug.engine.campaign.links import refuse_links
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.runner import elsewhere, refuse
from gpudebug.engine.campaign.worktrees import WorkingTree, place_of_base
from gpudebug.engine.run import adapters
from gpudebug.engine.run.import_paths import Trees, placed
from gpudebug.engine.run.job import Bench, MeasuredRun, PreparedRun, RunCode, RunLimits
from gpudebug.engine.run.live_line import Live, Report
from gpudebug.engine.run.measure import resolve_device
from gpudebug.engine.run.nodes import find_nodes, first_alone
from gpudebug.engine.run.origins import packages_of
from gpudebug.engine.run.planned import plan_of
from gpudebug.engine.run.reach import OutOfReach, beyond_reach
from gpudebug.engine.run.server import prepared


@dataclass
class Cycle:
    """One command's hold on a campaign: everything read, the claim held, a listener to report to.

    `stack` ends with the command: the devices that are locked, the worktree that the baseline runs in.
    `command` is how it is named to others; `pins` says that it pins the settings, if a person calls;
    `elsewhere` is the cluster's name if no run may be made here, `within_s` what a test may take.
    """

    loaded: Loaded
    claim: store.RunClaim
    report: Report
    command: str
    pins: bool = False
    elsewhere: str | None = None
    stack: ExitStack = field(default_factory=ExitStack)
    locked: set[str] = field(default_factory=set)
    locks: list[int] = field(default_factory=list)
    within_s: float | None = None
    _place: WorkingTree | None = None

    @property
    def setup(self) -> Setup:
        return self.loaded.setup

    def again(self) -> Cycle:
        """The same hold on the campaign as it is now. SettingsChanged if its settings were edited since."""
        now = load(self.loaded.setup.workspace.home, self.loaded.setup.session)
        settings.unchanged(self.loaded.setup.compared, now.setup)
        acceptance.refuse_altered(now.setup, now.entries)
        return replace(self, loaded=now)

    @property
    def place(self) -> WorkingTree:
        """Where the unmodified workload runs."""
        if self._place is None:
            self._place = self.stack.enter_context(place_of_base(self.loaded.setup, self.loaded.code))
        return self._place

    def lock(self, spec: Mapping[str, object], devices: Sequence[DeviceInfo]) -> tuple[int, ...]:
        """Hold these devices of a specification until the command ends. BusyError if another has one."""
        wanted = {uuid: name for uuid, name in real(devices).items() if uuid not in self.locked}
        holder = {
            "path": str(self.loaded.setup.workspace.root),
            "campaign": self.loaded.setup.config.campaign,
            "session": self.loaded.setup.session,
            "since": now(),
            "command": self.command,
        }
        self.locks += self.stack.enter_context(_locked(wanted, spec, holder, self.report))
        self.locked.update(wanted)
        return tuple(self.locks)


def remarks(report: Report) -> Callable[[str], None]:
    """Report a line that belongs to no run yet."""
    return lambda text: report(Live("", 0.0, None, None, None, None, None, text))


def real(devices: Sequence[DeviceInfo]) -> dict[str, str]:
    """Return the devices that a run would share with the host's others, by UUID: no recorded ones."""
    return {d.uuid: d.name for d in devices if not d.can.is_recording}


@contextmanager
def devices_held(benches: Sequence[Bench], directory: Path, command: str) -> Iterator[list[Bench]]:
    """The benches of a command outside a campaign, with their devices held until the block ends."""
    names = real([d for bench in benches for d in bench.devices])
    holder = {"path": str(directory), "campaign": None, "session": None, "since": now(), "command": command}
    most = max((bench.device for bench in benches), key=_own_cores)
    with _locked(names, most, holder, benches[0].report) as fds:
        yield [replace(bench, hold_fds=(*bench.hold_fds, *fds)) for bench in benches]


def _locked(
    names: Mapping[str, str], spec: Mapping[str, object], holder: Mapping[str, object], report: Report
) -> AbstractContextManager[tuple[int, ...]]:
    """Hold devices, `names` by UUID: GPUs each, of the CPU the cores that are its own, or a note."""
    if names and device_kind(spec["kind"]).shares_cores:
        return store.core_locks(_own_cores(spec), holder, remarks(report))
    return store.device_locks([*names], holder, names, remarks(report))


def _own_cores(spec: Mapping[str, object]) -> int:
    own = spec.get("own", 0)
    return own if isinstance(own, int) else 0


def claim_of(workspace: store.Workspace, command: str, session: str | None = None) -> store.RunClaim:
    """Return the right to run something here, or BusyError naming who has it."""
    holder = {"pid": os.getpid(), "command": command, "since": now(), "session": session}
    job = clusters.inside()
    mine = {} if job is None else {"allocation": job.allocation}
    return workspace.claim({**holder, **mine}, living_jobs(workspace))


@contextmanager
def claimed_campaign(
    directory: Path, report: Report, command: str, session: str | None = None, *, pins: bool = False
) -> Iterator[Cycle]:
    """Hold the campaign's claim and read it, once its settings are those that a person pinned.

    With `pins` a person's call pins them. BusyError if another command runs something in it,
    SettingsChanged if it may not measure under the settings of gpudebug.yaml.
    """
    workspace = find(directory)
    with claim_of(workspace, command, session) as claim, ExitStack() as stack:
        loaded = load(directory, session)
        if not pins:
            settings.refuse_other_repository(loaded.setup, loaded.history.records)
        # First of all: what a campaign of 0.1.0 has accepted is only known until anything else is recorded.
        changed = acceptance.settle(loaded.setup, loaded.entries)
        if changed is not None:
            report(Live("", 0.0, None, None, None, None, None, changed))
            loaded = load(directory, session)
        acceptance.refuse_altered(loaded.setup, loaded.entries)
        pinned = settings.admit(loaded.setup, loaded.history.records, pins=pins)
        if pinned is not None:
            report(Live("", 0.0, None, None, None, None, None, pinned))
        cluster = elsewhere(loaded.setup.workspace, loaded.setup.config)
        title = cluster.title if cluster is not None else None
        yield Cycle(loaded, claim, report, command, pins and session is None, title, stack)


def open_bench(cycle: Cycle, workload: Workload) -> Bench:
    """Find the device, check what can be checked before device time is spent, and lock it."""
    config = cycle.setup.config
    if cycle.elsewhere is not None:
        refuse(cycle.elsewhere, cycle.command, cycle.setup.workspace)
    env = training_environment(workload)
    try:
        spec, infos, notes = resolve_device(config.device, env, cycle.setup.workspace.root)
        launcher.find_command(workload.argv(), str(cycle.setup.workspace.root / workload.cwd), env)
    except (DeviceError, LaunchError) as e:
        e.file = e.file or str(cycle.setup.workspace.config)
        raise
    beyond = beyond_reach(workload.argv(), cycle.setup.workspace.root / workload.cwd)
    if beyond is not None and not device_kind(spec["kind"]).is_recording:
        raise OutOfReach(beyond, str(cycle.setup.workspace.config))
    settings.settle(cycle.setup, spec, pins=cycle.pins)
    _refuse_silent(infos)
    hold_fds = (cycle.claim.fd, *cycle.lock(spec, infos))
    spanned = find_nodes(infos, config.runner, env, cycle.loaded.history.records.values())
    return Bench(
        workspace=cycle.setup.workspace,
        campaign=config.campaign,
        device=spec,
        devices=spanned.devices,
        interval=config.protocol.interval,
        warmup=config.protocol.warmup,
        patterns=config.patterns,
        hold_fds=hold_fds,
        report=cycle.report,
        notes=(*notes, *spanned.notes, *cycle.place.notes, *_traps(cycle.setup.workspace, workload)),
        session=cycle.setup.session,
        settings=cycle.setup.compared.digest,
        others=spanned.others,
        phase=config.phase,
    )


def _traps(workspace: store.Workspace, workload: Workload) -> tuple[str, ...]:
    """Return what the step that this process is in was given by mistake."""
    job = clusters.inside()
    if job is None:
        return ()
    cores = len(host.allowed_cores())
    return traps(job, workload.argv(), os.environ, cores, workspace.root)


def lone_bench(
    root: Path, setting: str, env: Mapping[str, str], directory: Path, interval: float, report: Report
) -> Bench:
    """The bench of a command outside a campaign: its runs go below `root`, a lost sampler is not an error.

    `directory` is what a relative replay folder is relative to. DeviceError if there is no such device.
    """
    workspace = store.Workspace(root)
    if (root / store.CONFIG).exists():
        refuse_links(workspace)
    spec, infos, notes = resolve_device(setting, env, directory)
    return Bench(
        workspace=workspace,
        campaign=None,
        device=spec,
        devices=infos,
        interval=interval,
        warmup=None,
        patterns={},
        hold_fds=(),
        report=report,
        notes=(*notes, *first_alone()),
        require_sampler=False,
    )


def _refuse_silent(infos: tuple[DeviceInfo, ...]) -> None:
    """A device without utilisation cannot decide a trial; that is known before the first run."""
    silent = next((d for d in infos if "gpu_util" in d.missing), None)
    if silent is not None:
        raise DeviceError(
            f"{silent.name} ({silent.uuid}) does not report its utilisation: {silent.missing['gpu_util']}",
            next="choose a whole GPU with CUDA_VISIBLE_DEVICES",
        )


def job_of(
    cycle: Cycle,
    workload: Workload,
    role: str,
    label: str,
    identity: dict[str, str],
    place: WorkingTree | None = None,
) -> PreparedRun:
    """Return the unmodified workload as a job of this cycle, in `place` or where the base is."""
    place = place or cycle.place
    cwd, env = place.root / workload.cwd, training_environment(workload)
    trees = Trees(
        tree=place.top,
        checkout=cycle.setup.checkout.top,
        runs=cycle.setup.workspace.runs,
        packages=packages_of(place.before),
        probe=cycle.setup.config.probe,
    )
    command = placed(workload.argv(), env, workload.env, cwd, trees)
    part = "reference" if role.endswith("-reference") else "workload"
    return PreparedRun(
        label=label,
        role=role,
        argv=command.argv,
        cwd=cwd,
        env=command.env,
        env_names=tuple(sorted(workload.env)),
        shell=workload.shell,
        limits=RunLimits(
            timeout=workload.timeout,
            stall=workload.stall_timeout,
            output=workload.max_output,
            plan=plan_of(cycle.setup.config, cycle.loaded.history.baselines, part),
            least_window=least_pooled(cycle.setup.config.protocol.interval),
        ),
        code=RunCode(
            identity=identity,
            checkout=place.before,
            commit=place.commit,
            patch=place.patch,
            trees=trees,
            base_env=env,
        ),
        notes=command.notes,
        server=prepared(workload.server, place.root, trees),
        synonyms=adapters.synonyms_of(cycle.setup.workspace.root, workload),
        watched=_watched(cycle),
    )


def _watched(cycle: Cycle) -> tuple[str, ...]:
    """Return the variables that gpudebug.yaml sets or opens, and those that hypotheses set."""
    changes = cycle.loaded.entries.interventions.values()
    of_hypotheses = (part.name for change in changes for part in change.changes if part.kind == "env")
    names = {*cycle.setup.config.allowed.env, *of_hypotheses}
    return tuple(sorted(name for name in names if not name.startswith(SERVER)))


def stored_run(workspace: store.Workspace, name: str) -> MeasuredRun:
    """Read a run from its folder. StoreError if its records are not what gpudebug writes."""
    folder = workspace.run(name)
    record, evidence = record_of(folder, "run.json"), record_of(folder, "evidence.json")
    try:
        return MeasuredRun(folder, RunRecord.model_validate(record), Evidence.model_validate(evidence))
    except ValueError:
        raise StoreError(
            "its records are not what gpudebug writes",
            file=str(folder.path),
            next="move this run folder away, then gpudebug next",
        ) from None


def fresh_folder_advice(argv: Sequence[str]) -> str:
    """Return how each run gets a folder of its own, so that none finds what another has left."""
    option = frameworks.output_flag(argv, adapters.known())
    framework = frameworks.recognise(argv, adapters.known())
    if option is not None:
        where = f"{option.name}={option.value}/{{run}}"
    elif framework is not None and framework.results is not None:
        where = f"env {framework.results}={{run_dir}} in front of it"
    else:
        where = "{run} or {run_dir} in the path of its output or snapshot"
    return (
        f"give each run a folder of its own in workload.command of gpudebug.yaml ({where}), or switch "
        "resuming off and remove what it resumes from; then gpudebug baseline"
    )


def window_advice(argv: tuple[str, ...], runs: Sequence[MeasuredRun], seconds: float) -> str:
    """Return what would make the window of each of these runs so many `seconds` long; the shortest decides.

    `argv` is the command in gpudebug.yaml.
    """
    if any(not m.record.devices for m in runs):
        return "record the baseline by running it: gpudebug baseline"
    shortest = min(runs, key=window_of)
    option = frameworks.length_option(argv, adapters.known())
    rate = _rate_of(option, shortest.evidence) if option is not None and option.value else None
    if rate is None or option is None:
        return "train for more steps a run"
    missing = max(seconds - window_of(shortest), 0.0)
    steps = int(option.value or 0) + math.ceil(1.1 * rate * missing)
    return f"{option.name}={steps} in gpudebug.yaml would suffice"


def _rate_of(option: Option, e: Evidence) -> float | None:
    """Return how much a second of what an option counts, epochs or something that the run counted as often;
    None if it counted nothing like it: `--frames=2` may be anything."""
    length = int(option.value or 0)
    made = [count for count in (e.steps, e.total_steps, e.last_count) if count]
    alike = any(length / 2 <= count <= 2 * length for count in made)
    if made and not alike and not option.name.endswith("epochs"):
        return None
    if e.steps_per_s and e.steps and length / 2 <= e.steps <= 2 * length:
        return e.steps_per_s
    return length / e.duration_s if e.duration_s else None


def window_of(m: MeasuredRun) -> float:
    """Seconds of a run's steady window, 0 if it has none."""
    return m.evidence.window.duration_s if m.evidence.window else 0.0
