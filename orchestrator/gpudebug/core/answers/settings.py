"""What `settings` answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import Answer


@dataclass(frozen=True, kw_only=True)
class ChangedSetting:
    """A setting whose value in gpudebug.yaml is not the pinned one, both as JSON has them.

    `weaker`: whether a change passes more easily by it; null if that cannot be compared.
    """

    key: str
    value: Any
    pinned: Any
    weaker: bool | None


@dataclass(frozen=True, kw_only=True)
class SettingsAnswer(Answer):
    """The settings that bind a campaign: the pinned ones, else those of gpudebug.yaml.

    `settings` has them by key, as the file has them, and `lines` as texts; `classes` says of each whether
    another value is weaker (`ordered`) or asks for a new baseline (`different`). `action` is `pinned` if this
    call pinned them, `was_pinned` says whether they were before. `when` and `digest` are null if nothing is
    pinned. `changed`, as texts `differences`, is what gpudebug.yaml has otherwise; after a pin, what it had.
    `problem` says why what was pinned cannot be read. `replayed`: recordings are the device. `next_command`
    is null if nothing is to be pinned.
    """

    action: str
    campaign: str
    pinned: bool
    was_pinned: bool
    when: str | None
    digest: str | None
    replayed: bool
    settings: Mapping[str, Any]
    lines: tuple[str, ...]
    changed: tuple[ChangedSetting, ...]
    differences: tuple[str, ...]
    problem: str | None
    classes: Mapping[str, str]
    next_command: str | None
    files: tuple[str, ...]
