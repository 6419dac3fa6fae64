"""`gpudebug init`: writes a campaign's files; never overwrites."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpudebug.core import config as configs
from gpudebug.core.agents import instructions as known
from gpudebug.core.answers.setup import InitAnswer
from gpudebug.core.catalogue import frameworks
from gpudebug.core.config import Config, Workload
from gpudebug.core.errors import ConfigError, DeviceError, GpudebugError, UsageError
from gpudebug.core.text.shell_words import ShellSyntaxError
from gpudebug.core.words import device_kind
from gpudebug.edges import devices, git, store
from gpudebug.engine.agents import instructions as agents
from gpudebug.engine.agents import setup_files
from gpudebug.engine.campaign.files import progress_head, progress_path, read_config, read_progress
from gpudebug.engine.campaign.links import refuse_links
from gpudebug.engine.run import adapters
from gpudebug.engine.run.known_flags import idle_locks
from gpudebug.engine.tools.carry_over import carried_over, few_losses, look_of

ENDED = (
    "runs that would go on for long are ended by gpudebug after 30 s of steady training; "
    "protocol: {run_for: end} lets each end by itself"
)
LEARNING = (
    "learning will be judged by a reward if the runs show one, else by the training loss, from the log or "
    "from TensorBoard, W&B, CSV or JSONL files; the first baseline says which, and criteria.learning sets it"
)
BY_RATE = (
    "there is no GPU here, so metric: steps_per_s decides: of a CPU that stands in, what the program itself "
    "computes counts as busy"
)
ON_NODES = (
    "there is no GPU here, but sbatch: metric gpu_util is kept, as the nodes of jobs have GPUs as a rule; "
    "if they have none, set metric: steps_per_s, success: 1.2x, failure: 1.1x"
)
_NOTHING_SET: Mapping[str, str] = {}
_FOLDERS = ("runs", "progress", "hypotheses")


def init(
    directory: Path,
    *,
    command: str | None,
    reference: str | None = None,
    campaign: str | None = None,
    progress: str | None = None,
    goal: str = "",
    agent: Sequence[str] = (),
    session: str | None = None,
    run: str | None = None,
) -> InitAnswer:
    """Write gpudebug.yaml, the progress file and the folders in `directory`; add runs/ to .gitignore.

    `run` is a folder of `gpudebug why`: its command is the default, and a person's call makes it the first
    run of the baseline if it was one of this code, command, interpreter and device.

    With `agent`, the instruction files of these agents, too; without a command, those alone, beside the
    gpudebug.yaml that is there. A person's call pins the settings, a session's does not.
    """
    chosen = [known.agent(name) for name in agent]
    begun = look_of(directory, run) if run is not None else None
    if begun is not None and command is None:
        command = begun.command
    if not command or not command.strip():
        if chosen and command is None and (root := store.find_root(directory)):
            return _instruct(root, chosen, session)
        raise UsageError("no training command", next="gpudebug init -- python train.py --lr=1e-3")
    path = directory / store.CONFIG
    if path.exists():
        raise ConfigError(
            "; ".join(["is there already and is left as it is", *_idle_in(directory)]),
            file=str(path),
            next="edit it, or remove it; --agent alone writes an agent's instructions",
        )
    instructions = agents.prepare(directory, chosen)
    git.top_folder(directory)
    name = campaign or _slug(directory.resolve().name)
    draft = configs.load(_text(name, command, reference), str(path))
    kinds, program = adapters.known(), adapters.program_of(directory, draft.workload)
    notes = [note for part, w, t in _parts(draft, command, reference) if (note := _offered(part, w, t))]
    settings = begun.settings if begun is not None else {}
    lacking = _stands_in(settings.get("device", draft.device))
    rate = lacking and shutil.which("sbatch") is None
    notes += [BY_RATE if rate else ON_NODES] if lacking else []
    text = _text(
        name,
        frameworks.offer_run(command, kinds) or command,
        reference and (frameworks.offer_run(reference, kinds) or reference),
        goal=goal,
        progress=progress,
        locked=frameworks.suggested_locks(draft.workload.argv(), kinds, program),
        settings=settings,
        rate=rate,
    )
    config = configs.load(text, str(path))
    notes += _about(directory, config)
    # First: an init that is cut off before gpudebug.yaml is there is simply run again.
    notes += _pinned(directory, config, session)
    files = _write(directory, config, text)
    own, asides = setup_files.write(directory, [a.name for a in chosen], session)
    if begun is not None:
        notes += [*few_losses(begun), carried_over(directory, begun, session)]
    return InitAnswer(
        campaign=name,
        framework=_framework(directory, config),
        notes=(*notes, *asides, *_asides(instructions)),
        files=(*files, *agents.write(directory, instructions), *own),
    )


def _stands_in(device: str) -> bool:
    """Tell whether the CPU stands in for a GPU on this host."""
    try:
        found = devices.resolve(device, os.environ)
    except DeviceError:
        return False
    return device_kind(found.spec["kind"]).shares_cores


def _pinned(directory: Path, config: Config, session: str | None) -> list[str]:
    """Pin what is written; for a session, what a person has to do."""
    from gpudebug.engine.campaign.settings import ACCEPT, pin_written

    if session is not None:
        return [f"the settings are not pinned: before anything is measured a person runs {ACCEPT}"]
    workspace = store.Workspace(directory.resolve())
    pin_written(directory, workspace, config)
    return [f"the settings are pinned: after an edit of gpudebug.yaml run {ACCEPT}"]


def _instruct(root: Path, chosen: Sequence[known.AgentInstructions], session: str | None) -> InitAnswer:
    """Return the instruction files and settings of agents, in a campaign that is there already."""
    instructions = agents.prepare(root, chosen)
    config = read_config(store.Workspace(root))
    written = agents.write(root, instructions)
    settings, asides = setup_files.write(root, [a.name for a in chosen], session)
    same = [f"{i.path} has it already" for i in instructions if str(i.path) not in written]
    return InitAnswer(
        campaign=config.campaign,
        framework=_framework(root, config),
        notes=(*same, *asides, *_asides(instructions), *idle_locks(root, config)),
        files=(*written, *settings),
    )


def _idle_in(directory: Path) -> list[str]:
    """Return the locks of a campaign that is there already which its program does not have."""
    try:
        return idle_locks(directory, read_config(store.Workspace(directory)))
    except GpudebugError:
        # What is wrong with its settings is said by every command that reads them.
        return []


def _asides(instructions: Sequence[agents.Instruction]) -> list[str]:
    return [i.note for i in instructions if i.note]


def _text(
    name: str,
    command: str,
    reference: str | None,
    *,
    goal: str = "",
    progress: str | None = None,
    locked: tuple[str, ...] = (),
    settings: Mapping[str, str] = _NOTHING_SET,
    rate: bool = False,
) -> str:
    try:
        text = configs.config_text(
            name, command, reference, goal=goal, progress=progress, locked=locked, rate=rate
        )
        return text + "".join(f"{key}: {value}\n" for key, value in settings.items())
    except ShellSyntaxError as e:
        raise UsageError(
            f"the command cannot be split as a shell would: {e}", next="close its quotes, then try again"
        ) from None


def _parts(draft: Config, command: str, reference: str | None) -> list[tuple[str, Workload, str]]:
    parts = [("workload", draft.workload, command)]
    if draft.reference is not None and reference is not None:
        parts.append(("reference", draft.reference, reference))
    return parts


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:64] or "campaign"


def _offered(part: str, workload: Workload, text: str) -> str | None:
    """That `{run}` is in a fixed output folder now: a second run would find the first one's there."""
    flag = frameworks.output_flag(workload.argv(), adapters.known())
    if flag is None or frameworks.offer_run(text, adapters.known()) is None:
        return None
    return (
        f"{part}: {flag.name} was one fixed folder; {{run}} is in it now, so that each run gets its own. "
        "Edit gpudebug.yaml if that is not wanted"
    )


def _framework(root: Path, config: Config) -> str | None:
    framework = adapters.of(root, config.workload).framework
    return framework.name if framework else None


def _about(root: Path, config: Config) -> list[str]:
    """Return what the command shows before anything runs."""
    notes = []
    name = _framework(root, config)
    if name:
        notes.append(f"recognised the framework: {name}")
    notes.append(LEARNING)
    if config.protocol.run_for is None:
        notes.append(ENDED)
    for part, workload in (("workload", config.workload), ("reference", config.reference)):
        if workload is None:
            continue
        program = adapters.program_of(root, workload)
        advice = frameworks.log_advice(workload.argv(), adapters.known(), program=program)
        if advice:
            notes.append(f"{part}: logs too rarely to judge the loss; {advice.text}")
    return [*notes, *idle_locks(root, config)]


def _write(directory: Path, config: Config, text: str) -> list[str]:
    """Write what is not there yet; gpudebug.yaml last, since it is what makes a campaign."""
    written = []
    workspace = store.Workspace(directory)
    refuse_links(workspace)
    progress = progress_path(workspace, config)
    read_progress(progress)
    for folder in _FOLDERS:
        store.make_folder(directory / folder)
    if not progress.exists():
        store.replace_file(progress, progress_head(config).encode(), root=directory, expected=None)
        written.append(str(progress))
    ignore = directory / ".gitignore"
    if not git.ignores(directory, "runs/0001-x/run.json"):
        old = store.read_file(ignore, follow=True) if ignore.exists() else b""
        glue = b"" if not old or old.endswith(b"\n") else b"\n"
        store.replace_file(
            ignore,
            old + glue + b"runs/\n",
            root=directory,
            expected=store.digest(old) if ignore.exists() else None,
        )
        written.append(str(ignore))
    store.replace_file(directory / store.CONFIG, text.encode(), root=directory, expected=None)
    return [str(directory / store.CONFIG), *written]
