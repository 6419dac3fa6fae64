"""Editing the progress file so that what others save at the same moment is kept."""

from __future__ import annotations

from collections.abc import Callable

from gpudebug.core import progress
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import progress_head, read_progress

_RETRIES = 3


def splice(loaded: Loaded, edit: Callable[[progress.ProgressFile], bytes]) -> None:
    """Apply one edit to the progress file as it is now, under its lock; a blank one gets its head first.

    A save in between is kept.
    """
    lock = loaded.workspace.progress_lock(loaded.progress_path)
    for attempt in range(_RETRIES):
        with store.locked(lock):
            document = read_progress(loaded.progress_path)
            data = edit(_headed(loaded, document))
            if data == document.data:
                return
            before = store.digest(document.data) if loaded.progress_path.exists() else None
            try:
                store.replace_file(loaded.progress_path, data, root=loaded.workspace.home, expected=before)
            except store.SavedInBetween:
                if attempt + 1 == _RETRIES:
                    raise
            else:
                return


def _headed(loaded: Loaded, document: progress.ProgressFile) -> progress.ProgressFile:
    if document.data.strip():
        return document
    return progress.with_heading(document, progress_head(loaded.config))
