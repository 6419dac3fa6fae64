"""All root causes together: ordered, each with the file that says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpudebug.core.catalogue.model import GROUPS, Cause
from gpudebug.core.errors import CatalogueError, UsageError
from gpudebug.core.yaml.document import nearest


@dataclass(frozen=True)
class Catalogue:
    """`causes` by id; `files` says which file says each, `own` which are the user's."""

    causes: tuple[Cause, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()

    def get(self, id: str) -> Cause | None:
        return next((cause for cause in self.causes if cause.id == id), None)

    def cause(self, id: str) -> Cause:
        """Return the cause of this id. Raises UsageError that names the nearest one."""
        found = self.get(id)
        if found is None:
            near = nearest(id, [cause.id for cause in self.causes])
            raise UsageError(
                f"the catalogue has no {id!r}",
                next=f"gpudebug catalogue {near}" if near else "gpudebug catalogue",
            )
        return found

    def groups(self) -> dict[str, tuple[Cause, ...]]:
        """Return the causes of each group, in the order in which a batch meets them; no group without any."""
        grouped = {group: tuple(c for c in self.causes if c.group == group) for group in GROUPS}
        return {group: causes for group, causes in grouped.items() if causes}


def collect(found: Iterable[tuple[Cause, str, bool]]) -> Catalogue:
    """Return the catalogue of causes, the file of each, and whether that is the user's.

    Raises CatalogueError if two files say one id.
    """
    causes: dict[str, Cause] = {}
    files: dict[str, str] = {}
    own = set[str]()
    for cause, file, is_own in found:
        if cause.id in causes:
            what = "another file" if cause.id in own or not is_own else "a cause that gpudebug ships"
            raise CatalogueError(
                f"the id {cause.id} is that of {what}, {files[cause.id]}",
                file=file,
                next=f"give it an id and a name of its own, such as my-{cause.id}.yaml",
            )
        causes[cause.id], files[cause.id] = cause, file
        own |= {cause.id} if is_own else set()
    return Catalogue(tuple(causes[id] for id in sorted(causes)), files, frozenset(own))
