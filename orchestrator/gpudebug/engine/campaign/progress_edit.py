"""Editing the progress file so that what others save at the same moment is kept."""

from __future__ import annotations

from collections.abc import Callable

from gpudebug.core import progress
from gpudebug.core.config import Config
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Setup
from gpudebug.engine.campaign.files import progress_head, read_progress

_RETRIES = 3


def splice(setup: Setup, edit: Callable[[progress.ProgressFile], bytes]) -> None:
    """Apply one edit to the progress file as it is now, under its lock; a blank one gets its head first.

    A save in between is kept.
    """
    lock = setup.workspace.progress_lock(setup.progress_path)
    for attempt in range(_RETRIES):
        with store.locked(lock):
            document = read_progress(setup.progress_path)
            data = edit(_headed(setup.config, document))
            if data == document.data:
                return
            before = store.digest(document.data) if setup.progress_path.exists() else None
            try:
                store.replace_file(setup.progress_path, data, root=setup.workspace.home, expected=before)
            except store.SavedInBetween:
                if attempt + 1 == _RETRIES:
                    raise
            else:
                return


def _headed(config: Config, document: progress.ProgressFile) -> progress.ProgressFile:
    if document.data.strip():
        return document
    return progress.with_heading(document, progress_head(config))
