"""The settings that a person pinned, read beside those that gpudebug.yaml asks for. Nothing here writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gpudebug import __version__
from gpudebug.core.config import Config, Workload, pins
from gpudebug.core.config.pins import PinDifference
from gpudebug.core.errors import GpudebugError, LaunchError
from gpudebug.core.words import RECORDING, device_kind
from gpudebug.edges import git, host, launcher, store
from gpudebug.edges.store.private import PrivateFolder
from gpudebug.engine.campaign.files import ROLES, training_environment, workload_of
from gpudebug.engine.campaign.private import campaign_folder

FILE = "settings.json"
FORMAT = 1
DEVICE = "resolved.device"


@dataclass(frozen=True)
class Pin:
    """settings.json: what a campaign measures and by which bar, as a person pinned it.

    `replay` says that recordings were its device from the first pin on; `confirmed` has the digest of the
    verdict.json of each hypothesis that a person accepted by terms other than the pinned ones.
    """

    when: str
    settings: Mapping[str, Any]
    replay: bool = False
    confirmed: Mapping[str, str] = field(default_factory=dict)
    gpudebug: str = __version__
    format: int = FORMAT


def _read(data: bytes) -> Pin:
    """Return the pin in settings.json. ValueError if it is not what gpudebug writes."""
    found = json.loads(data)
    if not isinstance(found, dict) or not isinstance(found.get("format"), int):
        raise ValueError
    settings, confirmed = found.get("settings"), found.get("confirmed", {})
    if not isinstance(settings, dict) or not isinstance(confirmed, dict):
        raise ValueError
    when, version = str(found.get("when")), str(found.get("gpudebug"))
    return Pin(when, settings, found.get("replay") is True, confirmed, version, found["format"])


@dataclass(frozen=True)
class ComparedSettings:
    """The settings of gpudebug.yaml beside the pinned ones. `kept` is where the pin lies; `problem` says why
    one that is there cannot be used."""

    kept: PrivateFolder
    now: Mapping[str, Any]
    pinned: Pin | None = None
    problem: str | None = None

    @property
    def differences(self) -> tuple[PinDifference, ...]:
        """What gpudebug.yaml has otherwise than it was pinned; none without a pin."""
        return pins.differences(self.now, self.pinned.settings) if self.pinned else ()

    @property
    def bar(self) -> Mapping[str, Any]:
        """What verdicts are held against: the pinned settings, those of the file before there are any."""
        return self.pinned.settings if self.pinned else self.now

    @property
    def plays(self) -> bool:
        """Whether recordings are the device now."""
        return is_replay(self.bar)

    @property
    def replay(self) -> bool:
        """Whether recordings are the device from the start: then a replayed run is evidence here."""
        return self.plays and (self.pinned is None or self.pinned.replay)

    @property
    def digest(self) -> str | None:
        return pins.digest(self.pinned.settings) if self.pinned else None

    @property
    def file(self) -> Path:
        return self.kept.path / FILE


def settings_of(
    workspace: store.Workspace, config: Config, where: git.Checkout | git.Address
) -> ComparedSettings:
    """Return what `config`, as gpudebug.yaml has it, asks for, and what is pinned. Nothing is written."""
    kept = campaign_folder(workspace.root, config.campaign, where)
    found = ComparedSettings(kept, _asked(workspace, config))
    try:
        data = found.kept.read(FILE)
        pinned = None if data is None else _read(data)
    except GpudebugError as e:
        return replace(found, problem=f"{e.file}: {e.message}")
    except (ValueError, RecursionError):
        return replace(found, problem=f"{found.file}: is not what gpudebug writes")
    if pinned is not None and pinned.format > FORMAT:
        return replace(found, problem=f"{found.file}: a later gpudebug wrote it")
    return replace(found, pinned=pinned)


def _asked(workspace: store.Workspace, config: Config) -> dict[str, object]:
    found = pins.pinnable(config)
    choice = config.device_choice
    if device_kind(choice.kind).is_recording:
        found[DEVICE] = recordings(workspace.root, (workspace.root / choice.path).resolve())
    elif choice.kind != "auto":
        found[DEVICE] = choice.kind
    for role in ROLES:
        workload = workload_of(config, role)
        if workload is not None:
            found.update(_resolved(workspace.root, role, workload))
    return found


def is_replay(settings: Mapping[str, Any]) -> bool:
    return device_kind(str(settings.get(DEVICE, "")).partition(" ")[0]).is_recording


def recordings(root: Path, folder: Path) -> str:
    return f"{RECORDING.name} {_beside(root, folder)}"


def _resolved(root: Path, role: str, workload: Workload) -> dict[str, str]:
    """Return what the command starts here and now; nothing if it cannot be found."""
    env = training_environment(workload)
    try:
        program = launcher.find_command(workload.argv(), str(root / workload.cwd), env)
    except LaunchError:
        return {}
    found = {f"resolved.{role}.program": _beside(root, Path(program))}
    interpreter = host.find_interpreter(program, env.get("PATH", ""))
    if interpreter is not None:
        found[f"resolved.{role}.interpreter"] = _beside(root, Path(interpreter))
    return found


def _beside(root: Path, path: Path) -> str:
    """Return a path below the campaign's folder as seen from there, so that a copy of it keeps its pin."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def written(pinned: Pin) -> bytes:
    text = json.dumps(asdict(pinned), indent=1, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "surrogatepass")
