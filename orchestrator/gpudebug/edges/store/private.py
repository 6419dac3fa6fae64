"""Small files in a folder that no work tree reaches: opened without following a link, closed to others."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpudebug.core.errors import StoreError
from gpudebug.edges import opener, removal, temporary
from gpudebug.edges.opener import os_error

LARGEST = 1 << 20


@dataclass(frozen=True)
class PrivateFolder:
    """The folder `anchor/names…`; what is below `anchor` may not exist yet.

    StoreError if a file, or a folder below `anchor`, is a link or of another kind, or cannot be used.
    """

    anchor: Path
    names: tuple[str, ...]

    @property
    def path(self) -> Path:
        return self.anchor.joinpath(*self.names)

    def read(self, name: str) -> bytes | None:
        """Return a file; None if it is missing. StoreError too if it is another user's or too large."""
        path = self.path / name
        try:
            with removal.folder(self.anchor, *self.names) as parent, opener.opened(name, at=parent) as file:
                if os.fstat(file.fileno()).st_uid not in (os.geteuid(), 0):
                    raise StoreError("belongs to another user", file=str(path), next="move it away")
                data = opener.read(file, LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as e:
            raise os_error(e, path, "cannot read") from None
        if len(data) > LARGEST:
            raise StoreError(f"larger than {LARGEST >> 20} MB", file=str(path), next="move it away")
        return data

    def write(self, name: str, data: bytes) -> None:
        """Replace a file at once and durably; its folders are made, mode 0700, the file 0600."""
        try:
            for count, folder in enumerate(self.names):
                with removal.folder(self.anchor, *self.names[:count]) as parent, suppress(FileExistsError):
                    os.mkdir(folder, 0o700, dir_fd=parent)
            with removal.folder(self.anchor, *self.names) as parent:
                temporary.write(parent, name, data, 0o600)
        except OSError as e:
            raise os_error(e, self.path / name, "cannot write") from None

    def remove(self, name: str) -> None:
        """Remove a file, if it is there: no folder, and a link itself."""
        try:
            with removal.folder(self.anchor, *self.names) as parent:
                made = removal.identity_at(parent, name)
                if made is not None:
                    removal.remove_file(parent, name, made)
        except FileNotFoundError:
            return
        except OSError as e:
            raise os_error(e, self.path / name, "cannot remove") from None
