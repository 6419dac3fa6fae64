"""How a helper process of ours is started so that no module of the user's can get into it."""

from __future__ import annotations

from collections.abc import Iterable


def isolated_argv(executable: str, folders: Iterable[str], statement: str) -> tuple[str, ...]:
    """The command line that runs `statement` in `executable` with `folders` behind the standard library.

    `-I` ignores PYTHONPATH and the working folder and `-S` skips site-packages with its .pth files
    and any sitecustomize, so neither a `json.py` beside the training script nor the probe that is
    injected into the training can run here. `folders` are those of gpudebug and of its requirements.
    """
    path = list(dict.fromkeys(folders))
    return (executable, "-I", "-S", "-c", f"import sys; sys.path += {path!r}; {statement}")
