"""One YAML file to a `Cause` or a `Framework`; the first of all that is wrong, with its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TypeVar

from pydantic import ValidationError

from gpudebug.core.catalogue.model import GROUPS, Cause, Framework, Strict
from gpudebug.core.errors import CatalogueError, ConfigError, UsageError
from gpudebug.core.yaml.document import Document, Path, YamlProblem, nearest, read, refuse
from gpudebug.core.yaml.models import problems


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


_LARGEST = 1 << 17
_R = TypeVar("_R", bound=Strict)


def read_cause(
    text: str,
    file: str,
    *,
    group: str | None = None,
    frameworks: Sequence[Framework] | None = None,
    trusted: bool = False,
) -> Cause:
    """Return the root cause that the file's text says.

    `file` is named in errors, and its stem has to be the cause's id; `group` holds where the text names
    none. With `frameworks` the interventions are checked against them. One that is `trusted`, since the
    tests read it, is only checked for its shape: expressions are not compiled. Raises CatalogueError with
    file and line.
    """
    document = _read(text, file, "id: my-cause")
    if group is not None and "group" not in document.value:
        document.value["group"] = group
    cause = _validated(Cause, document)
    if not trusted:
        from gpudebug.core.catalogue import checks

        refuse(_all(cause, document, checks.problems(cause, frameworks)), document, CatalogueError)
    return cause


def read_framework(text: str, file: str) -> Framework:
    """Return the framework that the file's text says. Raises CatalogueError with file and line."""
    document = _read(text, file, "name: my-framework")
    framework = _validated(Framework, document)
    if framework.name != PurePosixPath(file).stem:
        refuse([_renamed("name", framework.name, file)], document, CatalogueError)
    return framework


def _read(text: str, file: str, example: str) -> Document:
    if len(text) > _LARGEST:
        raise CatalogueError(f"larger than {_LARGEST >> 10} KiB", file=file, next="keep one cause in it")
    try:
        document = read(text, file)
    except ConfigError as e:
        raise CatalogueError(e.message, file=e.file, line=e.line, next=e.next) from None
    if not isinstance(document.value, dict):
        raise CatalogueError(
            f"expected settings such as {example}", file=file, line=document.line(()), next="write key: value"
        )
    return document


def _validated(model: type[_R], document: Document) -> _R:
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        refuse(problems(error, model, _advice), document, CatalogueError)
    raise AssertionError("a record that is refused has a problem")


def _advice(path: Path, valid: str) -> str:
    return f"{path[-1]}: …" if valid == "…" else valid


def _renamed(key: str, value: str, file: str) -> YamlProblem:
    stem = PurePosixPath(file).stem
    return YamlProblem(
        (key,),
        f"{key} is {value!r}, but the file is named {stem!r}",
        f"write {key}: {stem}, or name the file {value}.yaml",
    )


def _all(cause: Cause, document: Document, found: Iterable[YamlProblem]) -> Iterator[YamlProblem]:
    """Yield what is wrong in a cause by itself, and by where its file lies."""
    if cause.id != PurePosixPath(document.file).stem:
        yield _renamed("id", cause.id, document.file)
    if cause.group is None:
        yield YamlProblem((), "group is missing", f"add group: one of {', '.join(GROUPS)}", missing=True)
    elif cause.group not in GROUPS:
        what = f"group: {cause.group!r}" if ("group",) in document.keys else f"the folder {cause.group!r}"
        near = nearest(cause.group, GROUPS)
        yield YamlProblem(
            ("group",), f"{what} is no group", f"write group: {near or 'one of ' + ', '.join(GROUPS)}"
        )
    yield from found
