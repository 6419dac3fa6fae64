"""The tree of expected errors: each knows its exit status and what the user does next."""

from __future__ import annotations

import errno


class GpudebugError(Exception):
    """An expected error: one clear line, a documented exit status and the next action.

    `message` says what is wrong, `file` and `line` (1-based) where, `next` what to do about it.
    """

    exit_code = 1
    code = "error"

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, next: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.next = next

    def __str__(self) -> str:
        where = (
            f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        )
        return f"{where}{self.message}" + (f"; next: {self.next}" if self.next else "")

    def as_json(self) -> dict[str, object]:
        """Return the `error` object of `--json`."""
        return {
            "code": self.code,
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "next": self.next,
        }


class UsageError(GpudebugError):
    exit_code = 2
    code = "usage"


class ConfigError(GpudebugError):
    """gpudebug.yaml is missing, broken or asks for the impossible."""

    code = "config"


class ProgressError(GpudebugError):
    """The progress file cannot be read without guessing."""

    code = "progress"


class CatalogueError(GpudebugError):
    """A file of the catalogue or of a framework is broken, or says what cannot be."""

    code = "catalogue"


class InterventionError(GpudebugError):
    """A change that cannot be parsed or cannot be applied to this command."""

    code = "intervention"


class NoEffect(InterventionError):
    """The command or its environment is as the change would make it."""


class StoreError(GpudebugError):
    """A file or folder that cannot be read or written safely."""

    code = "store"


class GitError(GpudebugError):
    code = "git"


class DeviceError(GpudebugError):
    """No usable device, or a driver that does not answer."""

    code = "device"


class ClusterError(GpudebugError):
    """A cluster refused a job, cannot be asked, or is not here."""

    code = "cluster"


class LaunchError(GpudebugError):
    """The command could not be started; `status` is 126 (not executable) or 127 (not found)."""

    code = "launch"

    def __init__(
        self,
        message: str,
        *,
        status: int,
        file: str | None = None,
        line: int | None = None,
        next: str | None = None,
    ) -> None:
        super().__init__(message, file=file, line=line, next=next)
        self.status = status


class BusyError(GpudebugError):
    """A lock, claim or device is held by another process; the message names it and since when."""

    exit_code = 6
    code = "busy"


class InterruptedRun(GpudebugError):
    """Ctrl-C reached gpudebug. If it is `void`, the cluster failed a run instead, and gpudebug goes on."""

    exit_code = 130
    code = "interrupted"
    void = False


_REFUSED = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space, then run it again"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise `ulimit -n`, then run it again"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "see whose it is and who may write, then run it again"),
    **dict.fromkeys((errno.EIO, errno.EROFS, errno.ESTALE), "see to the disk or mount, then run it again"),
    **dict.fromkeys((errno.ENOMEM, errno.EAGAIN), "run it again when the machine has room"),
}


def refused(error: Exception) -> GpudebugError | None:
    """Say what to do about a call that the machine refused, such as on a full disk; None for all else."""
    advice = _REFUSED.get(error.errno or 0) if isinstance(error, OSError) else None
    if advice is None or not isinstance(error, OSError):
        return None
    name = error.filename
    named = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
    if not isinstance(named, str):
        return GpudebugError(str(error.strerror), next=advice)
    text = f"{error.strerror}: {named.rpartition('/')[2]}"
    return GpudebugError(text, file=named if named.startswith("/") else None, next=advice)
