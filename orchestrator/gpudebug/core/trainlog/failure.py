"""Why a run failed: the class, and the lines that say so."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.endings import (
    CHILD_KILLED,
    DONE,
    GAVE_UP,
    KILLED,
    NOT_STARTED,
    SAID,
    SURVIVED,
    ending,
    kind_of,
)
from gpudebug.core.trainlog.text import readable

if TYPE_CHECKING:
    from gpudebug.core.records import Failure

MAX_LINES = 20
MAX_LINE = 500
TAIL_LINES = 60
KEPT_BLOCKS = 6
GOES_ON = 2
"""New steps after an error that say that training went on."""
MESSAGE_LINES = 8
LONGEST_LABEL = 40
NEAR_END = 8
HIDDEN = 3
"""Lines from the end of a log whose program ended with status 0."""

BETWEEN = 4
"""Ordinary lines between two exceptions that say that the first was caught: ranks die closer together."""

OUTLIVED = 200
"""Ordinary lines after an error that say that the program went on, or another one began."""

_ERROR_LINE = regex(r"\b(?:ERROR|FATAL|CRITICAL|[Ff]atal|[Ee]rror:|failed)(?!\w)")

ALERT = regex(
    rb"Traceback \(most|Error\b|[Ee]rror:|ERROR|Exception|Killed|killed|Segmentation|core dumped|SIG[A-Z]{3}"
    rb"|[Oo]ut of memory|OOM|oom-kill|RESOURCE_EXHAUSTED|Interrupt|NCCL|CUDA|Fatal|FATAL|terminate called"
    rb"|Aborted|exitcode|unrecognized arguments|^usage:|bad_alloc|Bus error|BadAlloc|No space left"
    rb"|No such option|Invalid value for|Unknown command line flag|Could not |Missing (?:option|argument"
    rb"|param)"
    rb"|CANCELLED|exit (?:code|status)|return code|PBS: |TERM_|[Tt]erminated|[Ww]atchdog|segmentation fault"
    rb"|No module named|open file|not in struct|^In '|: F [tex.]|^F0000 |abort$|died|on signal"
    rb"|mismatched input|[Ee]rror (?:occ|dur|whi|in )|[Ee]xception (?:occ|dur|whi)|[Cc]aught |FAILED|CRASHED"
    rb"|(?:failed|aborted|crashed)\b|[Aa]borting|[Gg]iving up|exception:|xpected error|ignal:? 0"
    rb"|ermission denied|not found|o such file|bad interpreter|cannot execute|syntax error|unbound variable"
    rb"|^\W*exit(?:ed)?[ :=]+0"
)
USAGE = regex(rb"(?:\[[^\]]{1,40}\]:? ?)*(?:usage: |[^\s:]{1,200}: error: )")
"""The lines of a command-line parser, whose options are no readings."""

_PREFIX = regex(
    r"^ {0,4}(?:(?:\[[\w .,:/=@-]{1,40}\](?:<std(?:out|err)>)?:?|\([\w.:, =]{0,60}pid=\d+[^)]{0,60}\)"
    r"|\d{1,5}:(?= ))){1,4} ?"
)
_RAISED = regex(r"^(?P<type>[A-Za-z_][\w.]{0,120})(?P<message>: .*|:?$)")
_LIKE_ERROR = regex(r"(?:Error|Exception|Interrupt|Exit|Failure|Fault|Warning|Timeout|Killed|Exhausted\w*)$")
_DATA = regex(r"\s*(?:tensor\(|[aA]rray\(|[\[({+.\d-]|nan|inf)")
_IGNORED = regex(
    r"Exception (?:ignored in|in thread)|--- Logging error ---|Error in (?:atexit|sys\.excepthook)"
)
_CHAINED = ("another exception occurred:", "direct cause of the following exception:")
_NO_END = regex(rb"fail|error|exit|code|status|abnormal|crash|kill|cancel", re.I)

_WRAPPER = regex(
    r"CalledProcessError|ChildFailedError|ProcessRaisedException|ProcessExitedException"
    r"|SignalException|^SystemExit|RayTaskError"
    r"|Caught \w+ in (?:DataLoader worker|replica|pin memory)|HYDRA_FULL_ERROR"
)
_UNPARSED = ("SyntaxError", "IndentationError", "TabError")
_KNOCK_ON = regex(
    r"[Cc]onnection (?:reset|closed|refused|was)|BrokenPipe|ConnectionResetError|EOFError|Aborting|heartbeat"
    r"|Broken pipe|remote process has terminated|watchdog|Watchdog|DataLoader worker .{0,80}exited"
)


@dataclass(slots=True)
class Block:
    """One raised exception, or one line that sounds like a failure.

    `who` is the label of the process that printed it, `plain` how many ordinary lines were before it;
    `chained` says that it was raised while another one was handled.
    """

    kind: str
    head: str
    frame: list[str]
    at: int
    steps: int
    raised: bool
    message: str = ""
    ignored: bool = False
    who: str = ""
    chained: bool = False
    plain: int = 0
    details: list[str] = field(default_factory=list)

    def quoted(self) -> list[str]:
        """Lines for people, the one that says most last: the head, unless its details finish its sentence."""
        goes_on = self.head.endswith(":") and bool(self.details) and not _DATA.match(self.details[0])
        values = [self.head, *self.details] if goes_on else [*self.details, self.head]
        return [line[:MAX_LINE] for line in (*self.frame, *values)]


@dataclass(slots=True)
class _OpenTraceback:
    """A traceback that is being read, for one rank's prefix."""

    ignored: bool
    chained: bool = False
    frame: list[str] = field(default_factory=list)


class FailureScan:
    """Collects, in bounded memory, what may explain a failure."""

    def __init__(self) -> None:
        self.tail: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._first: list[Block] = []
        self._recent: deque[Block] = deque(maxlen=KEPT_BLOCKS)
        self._open: dict[str, _OpenTraceback] = {}
        self._after: tuple[Block, int] | None = None
        self._ignored = self._chained = False
        self._plain = self._done = 0
        self.seen = self.raised = 0
        self.redrawn = b""
        """What a bar drew last, if nothing was printed after it."""

    @property
    def watching(self) -> bool:
        return bool(self._open) or self._after is not None

    def feed(self, segment: bytes, alert: bool, steps: int) -> None:
        """Takes one drawn line in; `alert` says whether ALERT matched, `steps` how many were seen so far."""
        self.seen += 1
        self.redrawn = b""
        self.tail.append(segment if len(segment) <= 4 * MAX_LINE else segment[: 4 * MAX_LINE])
        if alert or self.watching:
            self._read(readable(segment, 2 * MAX_LINE), alert, steps)
        else:
            self._plain += not segment.isspace()
        if self._first and DONE.search(segment) and not _NO_END.search(segment):
            self._done = self.seen

    def redraw(self, segment: bytes, alert: bool, steps: int) -> None:
        """Takes in what a bar drew; right behind it may stand what a shell or a scheduler said."""
        self.redrawn = segment
        behind = segment[segment.rfind(b"]") + 1 :] if alert else b""
        if behind and ALERT.search(behind):
            self.feed(behind, True, steps)

    def _read(self, text: str, alert: bool, steps: int) -> None:
        at = text.find("Traceback (most recent call last)")
        prefix = _PREFIX.match(text)
        end = prefix.end() if prefix else self._labelled(text, at)
        who = text[:end].strip()
        if at >= 0:
            before = readable(self.tail[-2], MAX_LINE) if len(self.tail) > 1 else ""
            ignored = self._ignored or bool(_IGNORED.search(text) or SURVIVED.search(before))
            if len(self._open) < 64:
                self._open[who] = _OpenTraceback(ignored, self._chained)
            self._ignored = self._chained = False
            self._after = None
            return
        line = text[end:]
        open_ = self._open.get(who)
        if open_ is not None:
            self._in_traceback(who, open_, line, steps)
            return
        if self._after is not None and self._continue(line) and not CHILD_KILLED.search(line):
            return
        self._ignored = _IGNORED.search(text) is not None
        self._chained = self._chained or any(sign in text for sign in _CHAINED)
        if alert and not (self._ignored or self._chained):
            self._loose(line, steps)

    def _labelled(self, text: str, at: int) -> int:
        """The end of another label, as a host's: what is before the head of a traceback, and then again."""
        if at >= 0:
            return at if at <= LONGEST_LABEL else 0
        label = next((who for who in self._open if who and text.startswith(who)), "")
        return len(label) + text[len(label) :].startswith(" ") if label else 0

    def _in_traceback(self, who: str, open_: _OpenTraceback, line: str, steps: int) -> None:
        raised = _RAISED.match(line)
        if raised and not line[:1].isspace():
            frame = open_.frame[-2:]
            block = Block(raised["type"], line, frame, self.seen, steps, True, line, open_.ignored, who)
            block.chained = open_.chained
            del self._open[who]
            self._add(block)
            self._after = (block, MESSAGE_LINES)
        elif line.strip(" ^~") and len(line) < 2 * MAX_LINE:
            open_.frame = [*open_.frame[-3:], line]

    def _continue(self, line: str) -> bool:
        """The lines after an exception's first may belong to its message."""
        if self._after is None:
            return False
        block, left = self._after
        if not line.strip() or left == 0:
            self._after = None
            return False
        block.message += "\n" + line[:MAX_LINE]
        if line[:1].isspace() or left == MESSAGE_LINES:
            block.details.append(line[:MAX_LINE])
        self._after = (block, left - 1)
        return bool(line[:1].isspace())

    def _loose(self, line: str, steps: int) -> None:
        raised = _RAISED.match(line)
        named = bool(raised and _LIKE_ERROR.search(raised["type"])) and not KILLED.search(line)
        kind = kind_of(line)
        if not (named or kind or ending(line) or SAID.search(line) or "error" in line.lower()):
            return
        self._add(Block(raised["type"] if named and raised else "", line, [], self.seen, steps, named, line))

    def _add(self, block: Block) -> None:
        block.plain = self._plain
        self.raised += block.raised
        (self._first if len(self._first) < KEPT_BLOCKS else self._recent).append(block)

    def blocks(self, ended_well: bool = False) -> list[Block]:
        """Return what was not ignored; if it may have `ended_well`, what no word of its end came after."""
        found = [b for b in (*self._first, *self._recent) if not b.ignored]
        last = [b for b in found if b.at > self._done and self._plain - b.plain <= OUTLIVED]
        return last if ended_well else found

    def last_lines(self, count: int) -> list[str]:
        lines = [readable(segment, MAX_LINE) for segment in (*self.tail, self.redrawn)]
        return [line for line in lines if line.strip()][-count:]


def classify_failure(
    scan: FailureScan, exit_status: int | None, signal: int | None, steps: int
) -> Failure | None:
    """Return the failure's class and at most 20 lines that say so; None for a run that ended well.

    `exit_status` is the process's (negative or 128+N: signal N); None if it is not known, as for a
    log without its run. With status 0 the text counts only if the log ends in an uncaught exception
    or an interrupt, as behind a pipe that hides the status. `steps` is the number of steps seen at the
    end: an error after which training went on explains nothing, unless the run failed and nothing else
    does (buffered output may follow the error that ended it).
    """
    if signal is None and exit_status is not None:
        signal = -exit_status if exit_status < 0 else exit_status - 128 if 128 < exit_status < 160 else None
    blocks = scan.blocks(ended_well=signal is None and exit_status in (None, 0))
    fatal = [b for b in blocks if steps - b.steps <= GOES_ON]
    if exit_status == 0 and signal is None:
        return _hidden(scan, fatal, steps)
    unknown = exit_status is None and signal is None
    if (fatal or not unknown) and not any(_tells(b) for b in fatal):
        fatal = blocks
    if unknown:
        sure = [b for b in fatal if b.raised or ending(b.head) or _last_error(b, scan, steps)]
        return _from_blocks(sure) if sure else _hidden(scan, fatal, steps)
    if signal == 2:
        return _failure("interrupted", _lines(scan, _of_kind(fatal, "interrupted")))
    found = _from_blocks(fatal)
    if signal in (9, 15):
        oom = _of_kind(fatal, "oom_host")
        return _failure("oom_host" if oom else "signal", _lines(scan, oom))
    if signal is not None:
        if found and found.kind not in ("exception", "interrupted", *_VAGUE):
            return found
        return _failure("signal", _lines(scan, fatal[:1]))
    kind = "config" if str(exit_status) in NOT_STARTED else "exception"
    return found or _failure(kind, _lines(scan, fatal[:3]))


# What programs survive, or only follows from another error: any other class is nearer to the cause.
_VAGUE = ("assertion", "connection")


def _last_error(block: Block, scan: FailureScan, steps: int) -> bool:
    """Tell whether an error that was only printed is among a log's last lines, and no step came after it.

    It is a logger's of a known class, or one that a program says it met.
    """
    near = scan.seen - block.at <= NEAR_END and steps == block.steps
    logged = _ERROR_LINE.search(block.head) is not None and kind_of(block.head) not in (None, *_VAGUE)
    return near and (logged or SAID.search(block.head) is not None)


def at_own_limit(found: Failure | None, limit_mb: float | None) -> Failure | None:
    """The failure of a run that the kernel killed because the run itself had filled its memory limit."""
    if limit_mb is None or found is None or found.kind not in ("signal", "oom_host"):
        return found
    line = f"the kernel killed it at its memory limit of {limit_mb:.0f} MB, which it had filled itself"
    return _failure("oom_host", (*found.lines, line), limit_mb)


def _hidden(scan: FailureScan, fatal: Sequence[Block], steps: int) -> Failure | None:
    for block in reversed(fatal):
        near = scan.seen - block.at
        if near <= 4 and kind_of(block.head) == "interrupted":
            return _failure("interrupted", block.quoted())
        if near <= 1 and block.raised and len(block.quoted()) > 1:
            return _from_blocks([block])
        if near <= HIDDEN and block.steps == steps and GAVE_UP.search(block.head):
            return _from_blocks([block])
    return None


def _failure(kind: str, lines: Iterable[str], own_limit_mb: float | None = None) -> Failure:
    # Loading the records takes longer than reading a page of a log that ended well.
    from gpudebug.core.records import Failure

    return Failure(kind=kind, lines=tuple(lines), own_limit_mb=own_limit_mb)


def _of_kind(blocks: Sequence[Block], kind: str) -> list[Block]:
    return [b for b in blocks if kind_of(b.message) == kind]


def _from_blocks(blocks: Sequence[Block]) -> Failure | None:
    """Return the root cause: the first exception that wraps no other and follows from no other's death."""
    killed = next((b for b in blocks if _deadly(b.head)), None)
    causes = [b for b in blocks if not _WRAPPER.search(b.head) and not CHILD_KILLED.search(b.head)]
    raised = [b for b in causes if b.raised]
    roots = [b for b in raised if not _KNOCK_ON.search(b.message)]
    if killed is not None and not roots:
        return _failure("signal", _unique([killed]))
    pool = _of_the_end(roots) or raised or causes or list(blocks)
    if not pool:
        return None
    kinds = [(b, _kind(b)) for b in pool]
    chosen, kind = next(((b, k) for b, k in kinds if k not in (None, *_VAGUE)), kinds[0])
    return _failure(kind or "exception", _unique(_with_error(chosen, causes)))


def _of_the_end(roots: Sequence[Block]) -> list[Block]:
    """Return the exceptions that ended the run: a process dies once, so that it caught those before its last.

    Exceptions that follow one another closely are those of ranks, or raised while the first was handled.
    """
    found: list[Block] = []
    for block in roots:
        if found and _was_caught(found[-1], block):
            found = []
        found.append(block)
    return found


def _was_caught(before: Block, block: Block) -> bool:
    kinds = kind_of(before.message), kind_of(block.message)
    if block.chained or before.who != block.who or (kinds[1] in ("nccl", "signal") and kinds[0] != kinds[1]):
        return False
    went_on = block.steps > before.steps or block.plain - before.plain > BETWEEN
    at_start = kinds[0] == "import" != kinds[1] or (before.kind in _UNPARSED and block.kind not in _UNPARSED)
    return block.who != "" or went_on or at_start


def _kind(block: Block) -> str | None:
    """Return the class of a block; of a line about a signal, the ending that it names."""
    kind = kind_of(block.message)
    return (ending(block.head) or kind) if kind in (None, "signal") and not block.raised else kind


def _with_error(chosen: Block, blocks: Sequence[Block]) -> list[Block]:
    """Return the line with a parser's error after its usage, which alone explains nothing."""
    if not chosen.head.startswith("usage:"):
        return [chosen]
    return [chosen, *[b for b in blocks if b.at > chosen.at and ": error: " in b.head][:1]]


def _tells(block: Block) -> bool:
    """Tell whether a block may be a cause, not the report of a parent process or of a rank stopped by it."""
    if CHILD_KILLED.search(block.head):
        return _deadly(block.head)
    return not _WRAPPER.search(block.head)


def _deadly(head: str) -> bool:
    match = CHILD_KILLED.search(head)
    return match is not None and (match[1] or match[2]) != "15"


def _lines(scan: FailureScan, blocks: Sequence[Block]) -> tuple[str, ...]:
    return tuple(_unique(blocks)) or tuple(scan.last_lines(5))


def _unique(blocks: Sequence[Block]) -> list[str]:
    out: list[str] = []
    for block in blocks:
        out += [line for line in block.quoted() if line not in out]
    return out[-MAX_LINES:]
