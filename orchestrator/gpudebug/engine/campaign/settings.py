"""The settings that a person pinned, and what may be measured under those that are in gpudebug.yaml now.

`init`, `baseline`, a first `next` and `settings --accept` of a person pin. What only reads never does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudebug.core.answers.setup import ChangedSetting, SettingsAnswer
from gpudebug.core.config import Config, pins
from gpudebug.core.config.pins import PinDifference
from gpudebug.core.errors import ConfigError, GpudebugError
from gpudebug.core.words import device_kind
from gpudebug.edges import git, store
from gpudebug.engine.campaign.campaign import Records, Setup
from gpudebug.engine.campaign.files import ROLES, training_environment
from gpudebug.engine.campaign.pin_record import (
    DEVICE,
    FILE,
    ComparedSettings,
    Pin,
    is_replay,
    recordings,
    settings_of,
    written,
)

ACCEPT = "gpudebug settings --accept"
_NAMED = 4


class SettingsChanged(ConfigError):
    """gpudebug.yaml asks for something else than a person has pinned."""

    code = "settings"


def refuse_other_repository(setup: Setup, records: Records) -> None:
    """Refuse to take up a campaign in a repository around its own, whose .git is gone.

    There nothing is pinned, and none of the commits that its runs were measured at is known.
    """
    root, checkout = setup.workspace.root, setup.checkout
    if setup.compared.pinned is not None or root == checkout.top:
        return
    mine = (r for r in records.values() if r.get("campaign") == setup.config.campaign)
    commits = {str(record["commit"]) for record in mine if record.get("commit")}
    if commits and not any(git.whole(checkout.at, commit) for commit in commits):
        raise SettingsChanged(
            f"its runs were measured in another repository than {checkout.top}: is its own .git gone?",
            file=str(root),
            next=f"put its .git back; or, to go on in this repository: {ACCEPT}",
        )


def admit(setup: Setup, records: Records, *, pins: bool = False) -> str | None:
    """Refuse a measurement under settings that no person has pinned; pin what a person may pin by it.

    With `pins` a person's command pins the settings as they are. What was pinned, in a line, if anything was.
    """
    found, person = setup.compared, setup.session is None
    if not person and found.pinned is None:
        raise SettingsChanged(
            found.problem or "no person has pinned the settings of this campaign yet",
            file=str(setup.workspace.config),
            next=f"a person runs: {ACCEPT}",
        )
    if found.problem is not None and not pins:
        raise SettingsChanged(found.problem, next=ACCEPT)
    if found.pinned is None:
        pin(setup, records)
        return f"pinned the settings of gpudebug.yaml: {_summary(found.now)}; `gpudebug settings` prints all"
    changed = found.differences
    if not changed:
        return None
    if not (person and pins):
        raise _refused(setup, changed)
    pin(setup, records)
    return f"pinned again: {_few(setup, changed)}"


def _refused(setup: Setup, changed: tuple[PinDifference, ...]) -> SettingsChanged:
    undo = "put gpudebug.yaml back as it was"
    if setup.session is None:
        advice = f"{ACCEPT}, or {undo}"
    else:
        advice = f"{undo}; a person who means it runs: {ACCEPT}"
    return SettingsChanged(
        f"not what is pinned: {_few(setup, changed)}", file=str(setup.workspace.config), next=advice
    )


def unchanged(compared: ComparedSettings, setup: Setup) -> None:
    """Refuse to go on if the settings were edited since this command read them first."""
    changed = pins.differences(setup.compared.now, compared.now)
    if changed:
        raise SettingsChanged(
            f"edited while this command ran: {_few(setup, changed).replace('pinned is', 'was')}",
            file=str(setup.workspace.config),
            next="gpudebug settings",
        )


def settle(setup: Setup, spec: Mapping[str, object], *, pins: bool = False) -> None:
    """Compare the device that was found with the pinned one; the first one that is found is pinned."""
    found = setup.compared
    if found.pinned is None:
        return
    device = str(spec["kind"])
    if device_kind(device).is_recording:
        device = recordings(setup.workspace.root, Path(str(spec["folder"])))
    known = found.pinned.settings.get(DEVICE)
    if known == device:
        return
    if known is not None and not pins:
        raise _refused(setup, (PinDifference(DEVICE, device, known),))
    _write(setup, replace(found.pinned, settings={**found.pinned.settings, DEVICE: device}))


def pin(setup: Setup, records: Records, device: str | None = None) -> None:
    """Pin the settings as gpudebug.yaml has them now, with the kind of `device` if it was found already."""
    found = setup.compared
    now = dict(found.now)
    if DEVICE not in now and (known := device or _known_device(found)) is not None:
        now[DEVICE] = known
    replays = is_replay(now)
    first = found.pinned is None
    _write(
        setup,
        Pin(
            when=_time(),
            settings=now,
            replay=replays
            and (not _measured(setup, records) if first else bool(found.pinned and found.pinned.replay)),
            confirmed=found.pinned.confirmed if found.pinned else {},
        ),
    )


def _known_device(found: ComparedSettings) -> str | None:
    """Return the device that was pinned for the same choice."""
    if found.pinned is None or found.pinned.settings.get("device") != found.now.get("device"):
        return None
    return found.pinned.settings.get(DEVICE)


def _measured(setup: Setup, records: Records) -> bool:
    """Tell whether a run of this campaign was measured on a device before anything was pinned."""
    return any(
        record.get("campaign") == setup.config.campaign
        and record.get("devices")
        and record.get("replayed") is False
        for record in records.values()
    )


def confirm(setup: Setup, records: Records, number: int, verdict: str) -> None:
    """Remember that a person accepted the verdict with this digest by the terms that it was judged by."""
    pinned = setup.compared.pinned
    if pinned is None:
        pin(setup, records)
        pinned = setup.compared.pinned
    assert pinned is not None
    _write(setup, replace(pinned, confirmed={**pinned.confirmed, str(number): verdict}))


def _write(setup: Setup, pinned: Pin) -> None:
    found = setup.compared
    found.kept.write(FILE, written(pinned))
    setup.compared = replace(found, pinned=pinned, problem=None)


def pin_written(directory: Path, workspace: store.Workspace, config: Config) -> None:
    """Pin what `init` has just written; the repository may have no commit yet."""
    found = settings_of(workspace, config, git.whereabouts(directory))
    replays = device_kind(config.device_choice.kind).is_recording
    pinned = Pin(when=_time(), settings=dict(found.now), replay=replays)
    found.kept.write(FILE, written(pinned))


def _time() -> str:
    from gpudebug.edges.host import now

    return now()


def scrubbed(setup: Setup, text: str) -> str:
    """Return a text on settings without their secrets, those of the pinned command among them."""
    from gpudebug.core.redaction.redact import Redactor

    pinned = setup.compared.pinned.settings if setup.compared.pinned else {}
    for role in ROLES:
        env, words = pinned.get(f"{role}.env"), pinned.get(f"{role}.command")
        env = {str(k): str(v) for k, v in env.items()} if isinstance(env, dict) else {}
        argv = str(words).split() if isinstance(words, str) else [str(word) for word in words or ()]
        text = Redactor(env, argv).redact(text)
    return setup.workspace.scrub(text)


def _few(setup: Setup, changed: tuple[PinDifference, ...]) -> str:
    """Return the first differences in one line."""
    text = "; ".join(difference.text for difference in changed[:_NAMED])
    more = f"; and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    return scrubbed(setup, text) + more


def _summary(now: Mapping[str, Any]) -> str:
    device = now.get(DEVICE) or now.get("device")
    return (
        f"device {device}, {now.get('metric')}, success {now.get('criteria.success'):g}, "
        f"failure {now.get('criteria.failure'):g}"
    )


def lines(setup: Setup) -> list[str]:
    """Return a line for each difference, without secrets."""
    return [scrubbed(setup, difference.text) for difference in setup.compared.differences]


def settings(directory: Path, accept: bool = False, session: str | None = None) -> SettingsAnswer:
    """Return what is pinned, and what gpudebug.yaml has otherwise. `accept` pins it as it is.

    Raises SettingsChanged if a session asks to pin.
    """
    from gpudebug.engine.campaign import acceptance
    from gpudebug.engine.campaign.load import load

    loaded = load(directory, session)
    if accept and session is not None:
        raise SettingsChanged(
            f"session {session} cannot pin settings: the bar for its changes is a person's choice",
            file=str(loaded.setup.workspace.config),
            next=f"a person runs: {ACCEPT}",
        )
    before, differing = loaded.setup.compared, lines(loaded.setup)
    changed = tuple(
        ChangedSetting(
            key=d.key,
            value=_plain(loaded.setup, d.value),
            pinned=_plain(loaded.setup, d.pinned),
            weaker=d.weaker,
        )
        for d in before.differences
    )
    if accept:
        # What a campaign of 0.1.0 has accepted is only known until anything else is recorded.
        acceptance.settle(loaded.setup, loaded.entries)
        pin(loaded.setup, loaded.history.records, _found_device(loaded.setup))
    found = loaded.setup.compared
    return SettingsAnswer(
        action="pinned" if accept else "settings",
        campaign=loaded.setup.config.campaign,
        pinned=found.pinned is not None,
        was_pinned=before.pinned is not None,
        when=found.pinned.when if found.pinned else None,
        digest=found.digest,
        replayed=found.replay,
        settings=_plain(loaded.setup, dict(found.bar)),
        lines=tuple(scrubbed(loaded.setup, line) for line in pins.shown(found.bar)),
        changed=changed,
        differences=tuple(differing),
        problem=found.problem,
        classes={key: str(pins.rule_of(key).kind) for key in found.bar},
        next_command=None if found.pinned and (accept or not differing) else ACCEPT,
        files=(str(found.file),) if found.pinned else (),
    )


def _plain(setup: Setup, value: Any) -> Any:
    from gpudebug.core.redaction.records import scrubbed_record as without

    return without(value, lambda text: scrubbed(setup, text))


def _found_device(setup: Setup) -> str | None:
    """Return the kind of device that `auto` finds now; None if none can be found."""
    from gpudebug.edges import devices

    config = setup.config
    if config.device_choice.kind != "auto":
        return None
    try:
        env = training_environment(config.workload)
        return str(devices.resolve(config.device, env, setup.workspace.root).spec["kind"])
    except GpudebugError:
        return None
