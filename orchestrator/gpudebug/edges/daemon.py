"""A process that outlives its caller: started in a session of its own, heard through a pipe."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpudebug.core.errors import LaunchError
from gpudebug.edges import opener

_LONGEST = 1 << 24
# Forks at once, so that it has no parent: to end the caller's children does not end it.
_STATEMENT = (
    "import os,sys\n"
    "if os.fork(): os._exit(0)\n"
    "sys.path[:]={path!r}\n"
    "from {module} import main\n"
    "sys.exit(main(sys.argv[1], {fd}))\n"
)


class Daemon:
    """A background Python that runs `MODULE.main(REQUEST, FD)`; what it writes to FD, a line each, is heard.

    It has this process's sys.path, standard input from /dev/null and its output in `log`.
    """

    def __init__(self, module: str, request: str, *, cwd: str, env: Mapping[str, str], log: Path) -> None:
        hear, tell = os.pipe()
        statement = _STATEMENT.format(path=sys.path, module=module, fd=tell)
        try:
            with os.fdopen(opener.descriptor(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as output:
                subprocess.run(
                    [sys.executable, "-c", statement, request],
                    cwd=cwd,
                    env=dict(env),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(tell,),
                    start_new_session=True,
                    check=True,
                )
        except (OSError, subprocess.CalledProcessError) as e:
            os.close(hear)
            raise LaunchError(
                f"cannot start a background process: {getattr(e, 'strerror', None) or e}",
                status=126,
                file=str(log),
                next="gpudebug next runs it in the foreground",
            ) from None
        finally:
            os.close(tell)
        self._hear = hear
        self._data = b""
        os.set_blocking(hear, False)

    def hear(self, within: float) -> dict[str, object] | None:
        """The next thing that it says; {} where it ended without a word, None if `within` seconds pass."""
        deadline = time.monotonic() + within
        while b"\n" not in self._data:
            ready, _, _ = select.select([self._hear], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            data = os.read(self._hear, 65536)
            if not data or len(self._data) > _LONGEST:
                return {}
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        return dict(json.loads(line))

    def leave(self) -> None:
        """Hear no more; it goes on."""
        os.close(self._hear)


class Ear:
    """The background process's end of the pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        os.set_inheritable(fd, False)

    def tell(self, report: Mapping[str, Any]) -> bool:
        """Send one report; False if the caller is gone."""
        data = json.dumps(report).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except BrokenPipeError:
            return False
        return True
