"""What a session was shown of its page: a second one has only what changed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from gpudebug.core.agents.page import unseen
from gpudebug.core.errors import StoreError
from gpudebug.core.text.values import short_digest
from gpudebug.edges import store
from gpudebug.engine.campaign.files import find, read_config

_SESSIONS = 32
"""Sessions that are remembered, the latest: another gets its page whole."""


def only_new(workspace: store.Workspace, session: str | None, page: str) -> str:
    """The page without what this session was shown before; whole for a person, and if nothing can be kept."""
    if session is None:
        return page
    known = _known(workspace)
    text, digests = unseen(page, known.pop(session, ()), short_digest)
    try:
        store.put_pages(workspace, {**dict([*known.items()][1 - _SESSIONS :]), session: list(digests)})
    except StoreError:
        return page
    return text


def forget(directory: Path, session: str | None) -> None:
    """The next page of this session, of the campaign at or above `directory`, is whole."""
    workspace = find(directory)
    workspace.campaign = read_config(workspace).campaign
    known = _known(workspace)
    if session is not None and known.pop(session, None) is not None:
        with suppress(StoreError):
            store.put_pages(workspace, known)


def _known(workspace: store.Workspace) -> dict[str, list[str]]:
    """Return what is recorded, as far as it is what gpudebug writes."""
    found = store.get_pages(workspace)
    pairs = found.items() if isinstance(found, dict) else ()
    return {name: shown for name, shown in pairs if isinstance(shown, list)}
