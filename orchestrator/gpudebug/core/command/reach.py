"""Commands whose training runs out of gpudebug's reach: in a container, on another host, in a daemon.

Process tree, probe and stop ladder end at the client that such a command starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gpudebug.core.command.launchers import basename, programs
from gpudebug.core.lazy import regex
from gpudebug.core.text import shell_words

_SHELL = regex(r"(ba|da|z|k)?sh")
_TRAINS = regex(r"(python|pypy)[\d.]*t?|torchrun|accelerate|deepspeed|.*\.py")
_KEYWORDS = frozenset({"if", "then", "else", "do", "while", "until", "!", "{", "(", "exec"})
_OPERATORS = regex(r"[|&;()]+")
_ENDS = (";", "&")
_READ = Callable[[str], "str | None"]


class BeyondReach(NamedTuple):
    """A command that hands the training to something else: the `client`'s name, `where` the training runs,
    and `instead`, how it is measured. `here`: it is on this host, so that its devices are seen."""

    client: str
    where: str
    instead: str
    here: bool = False

    @property
    def unseen(self) -> str:
        """What is not seen of it, in one clause."""
        return (
            f"`{self.client}` runs the training {self.where}: its processes, its stacks and its probe are "
            f"not seen here, and ending `{self.client}` may not end it"
        )


class _HandingClient(NamedTuple):
    """`subcommands` are those that start something, None if it always does; `unless` an option with which
    it stays within reach, `only` one without which it does."""

    where: str
    instead: str
    subcommands: frozenset[str] | None = None
    unless: str | None = None
    only: str | None = None
    here: bool = False


_INSIDE = "run gpudebug inside: put `gpudebug why --` before the training's own command there"
_ATTACHED = "; or start it, then `gpudebug why --pid PID` on its host"


def _container(*subcommands: str) -> _HandingClient:
    return _HandingClient("in a container", _INSIDE + _ATTACHED, frozenset(subcommands), here=True)


_REMOTE = _HandingClient("on another host", f"{_INSIDE}{_ATTACHED}")
_BATCH = _HandingClient(
    "in a job that the batch system starts",
    "put `gpudebug why --` before the training's command in the script",
)
_POD = _HandingClient("in a pod", _INSIDE, frozenset({"exec", "run", "create", "apply", "attach", "debug"}))
_CLOUD = _HandingClient(
    "on another host", _INSIDE, frozenset({"ssh", "run", "submit", "launch", "exec", "start-session"})
)
_SERVER = _HandingClient("in a server of its own", f"run the training's command itself{_ATTACHED}")
_KERNEL = _HandingClient(
    "in a kernel that runs already", f"run the notebook as a script{_ATTACHED}", only="--existing"
)
_CLIENTS: dict[str, _HandingClient] = {
    **dict.fromkeys(("docker", "podman", "nerdctl", "nvidia-docker", "finch"),
                    _container("run", "exec", "start", "compose", "attach")),
    **dict.fromkeys(("docker-compose", "podman-compose"), _container("run", "exec", "up", "start")),
    **dict.fromkeys(("ssh", "rsh", "mosh", "pdsh", "clush", "autossh", "sshpass"), _REMOTE),
    **dict.fromkeys(("kubectl", "oc", "k3s", "microk8s"), _POD),
    **dict.fromkeys(("gcloud", "aws", "az", "sky", "modal", "runai", "ray"), _CLOUD),
    **dict.fromkeys(("sbatch", "qsub", "bsub", "condor_submit", "at", "batch", "llsubmit"), _BATCH),
    **dict.fromkeys(("tmux", "screen"), _SERVER),
    "systemd-run": _SERVER._replace(where="in a service of systemd", unless="--scope"),
    **dict.fromkeys(("jupyter", "jupyter-console", "jupyter-run"), _KERNEL),
}  # fmt: skip


def out_of_reach(argv: Sequence[str], read: _READ = lambda path: None) -> BeyondReach | None:
    """What such a command hands its training to; None if it runs below the command, as far as words say.

    `read` gives the text of a shell script by its path, None if it cannot be read. A shell's text that
    also starts a training itself is within reach.
    """
    found = None
    for words in _commands(argv, read):
        found = found or _beyond(words)
        if _trains(words):
            return None
    return found


def _commands(argv: Sequence[str], read: _READ, depth: int = 2) -> Iterator[Sequence[str]]:
    """Yield the command without what stands before its program; of a shell's text each of its commands."""
    words, text = argv, None
    for at in programs(argv):
        words = argv[at:]
        if basename(argv[at]) in _CLIENTS:
            break
    if words and _SHELL.fullmatch(basename(words[0])):
        text = _text(words[1:], read)
    elif words and words[0].endswith(".sh"):
        text = read(words[0])
    if text is None or not depth:
        yield words
        return
    for inner in _in_text(text):
        yield from _commands(inner, read, depth - 1)


def _text(words: Sequence[str], read: _READ) -> str | None:
    """Return the text that a shell is given behind `-c`, or that of its script."""
    for i, word in enumerate(words):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return next((w for w in words[i + 1 :] if not w.startswith("-")), None)
        if not word.startswith(("-", "+")):
            return read(word)
    return None


def _in_text(text: str) -> Iterator[Sequence[str]]:
    """Yield the commands of a shell's text, as far as its words show them."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("#"):
            continue
        try:
            words = [word.value for word in shell_words.split(line, strict=False)]
        except shell_words.ShellSyntaxError:
            continue
        command: list[str] = []
        for word in words:
            if _OPERATORS.fullmatch(word) or (not command and word in _KEYWORDS):
                if command:
                    yield command
                command = []
                continue
            command.append(word.rstrip(";&"))
            if word.endswith(_ENDS):
                yield command
                command = []
        if command:
            yield command


def _beyond(words: Sequence[str]) -> BeyondReach | None:
    name = basename(words[0]) if words else ""
    client = _CLIENTS.get(name)
    if client is None:
        return None
    own = list(words[1:])
    if client.subcommands is not None and not client.subcommands & {w for w in own if w[:1] != "-"}:
        return None
    if client.unless in own or (client.only is not None and client.only not in own):
        return None
    started = next((w for w in own if w in (client.subcommands or ())), None)
    return BeyondReach(f"{name} {started}" if started else name, client.where, client.instead, client.here)


def _trains(words: Sequence[str]) -> bool:
    return bool(words) and _TRAINS.fullmatch(basename(words[0])) is not None
