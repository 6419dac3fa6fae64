"""A cluster's defaults for `runner:`: what GPUDEBUG_CLUSTER names, else /etc/gpudebug/cluster.yaml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gpudebug.core.errors import ClusterError

VARIABLE = "GPUDEBUG_CLUSTER"
USUAL = Path("/etc/gpudebug/cluster.yaml")
_MOST_BYTES = 2**20


def cluster_file(environ: Mapping[str, str] | None = None, usual: Path = USUAL) -> tuple[str, str] | None:
    """Text and path of the file; None if there is none. ClusterError if one is named and cannot be read."""
    named = (os.environ if environ is None else environ).get(VARIABLE, "")
    path = Path(named) if named else usual
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES + 1).decode("utf-8"), str(path)
    except FileNotFoundError:
        if not named:
            return None
        reason = "there is no such file"
    except OSError as e:
        reason = str(e.strerror)
    except UnicodeDecodeError:
        reason = "not UTF-8"
    whose = VARIABLE if named else "the cluster's defaults"
    raise ClusterError(f"{whose}: {reason}", file=str(path), next=f"correct it, or set {VARIABLE}")
