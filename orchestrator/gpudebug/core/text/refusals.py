"""What the machine refuses any call of ours: a full or broken disk, too many open files, missing rights."""

from __future__ import annotations

import errno

from gpudebug.core.errors import GpudebugError

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
