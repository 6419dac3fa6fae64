"""A full screen, redrawn once a second, that restores the terminal when it ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gpudebug.core.errors import GpudebugError
from gpudebug.terminal.fit import draws
from gpudebug.terminal.output import print_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

REDRAWN_EVERY_S = 1.0
LINE_EVERY_S = 10.0
_ENTER = "\033[?1049h"
_LEAVE = "\033[?25h\033[?1049l"
_HOME = "\033[H"
_CLEAR = "\033[2J"
_HIDE = "\033[?25l"
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_HEARD = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)


class LookResult(Protocol):
    """What `look` returns."""

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        ...


S = TypeVar("S", bound=LookResult)


def watch(
    look: Callable[[], S],
    frame: Callable[[S, int, int, bool], RenderableType],
    line: Callable[[S], str],
) -> None:
    """Show what `look` returns once a second until `q` is pressed.

    `frame` renders it for a screen of a width and a height in characters, in ASCII if its last argument is
    false. If standard output is not a terminal that can be drawn on, `line` is printed every ten seconds, and
    when its first word changes, until a look is `over`. An exception, Ctrl-C too, restores the terminal.
    """
    if sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown"):
        try:
            _on_screen(look, frame)
        except _EndSignal as e:
            # Die of the signal itself: the parent process sees which one it was.
            signal.signal(e.number, signal.SIG_DFL)
            os.kill(os.getpid(), e.number)
    else:
        _in_lines(look, line)


def _in_lines(look: Callable[[], S], line: Callable[[S], str]) -> None:
    last, due = "", 0.0
    while True:
        seen = look()
        text = line(seen)
        about = text.split(" ", 1)[0]
        if seen.over or about != last or time.monotonic() >= due:
            print_text(text)
            last, due = about, time.monotonic() + LINE_EVERY_S
        if seen.over:
            return
        time.sleep(REDRAWN_EVERY_S)


def _on_screen(look: Callable[[], S], frame: Callable[[S, int, int, bool], RenderableType]) -> None:
    with _Terminal() as terminal:
        seen = look()
        due = time.monotonic() + REDRAWN_EVERY_S
        while True:
            width, height = terminal.size
            terminal.draw(frame(seen, width, height, terminal.unicode))
            if terminal.wait(due) == "quit":
                return
            if time.monotonic() >= due:
                seen = look()
                due = time.monotonic() + REDRAWN_EVERY_S


class _EndSignal(BaseException):
    """A signal that ends the program; not an `Exception`, which a handler on the way could catch."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Terminal:
    """The terminal of standard output: the alternate screen, no cursor, keys as they are typed, no echo."""

    def __init__(self) -> None:
        from rich.console import Console

        self._out = sys.stdout.fileno()
        self._encoding = sys.stdout.encoding or "ascii"
        self._keys: int | None = 0 if os.isatty(0) else None
        self._console: Console = Console(force_terminal=True, force_interactive=False, highlight=False)
        self._modes: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._wakeup = (-1, -1)
        self._last_wakeup = -1

    def __enter__(self) -> _Terminal:
        self._listen()
        try:
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        _deafen()
        self._give_back()
        signal.set_wakeup_fd(self._last_wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for fd in self._wakeup:
            os.close(fd)

    @property
    def unicode(self) -> bool:
        """Whether it shows more than ASCII."""
        return draws(self._encoding)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines now; 80 and 24 if unknown."""
        try:
            size = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        return size.columns or 80, size.lines or 24

    def draw(self, renderable: RenderableType) -> None:
        """Fill the screen in one write; what is too large is cut."""
        from rich.screen import Screen

        self._console.size = self.size
        with self._console.capture() as drawn:
            self._console.print(Screen(renderable), end="")
        # Not cleared first, which would flicker: every line is drawn to its end.
        self._write(_HOME + drawn.get())

    def wait(self, until: float) -> str:
        """Wait until a time of the monotonic clock or an event; return `quit`, `redraw` or `due`."""
        while (left := until - time.monotonic()) > 0:
            fds = [fd for fd in (self._keys, self._wakeup[0]) if fd is not None]
            ready, _, _ = select.select(fds, [], [], left)
            if self._keys in ready and self._quits():
                return "quit"
            if self._wakeup[0] in ready and self._heed():
                return "redraw"
        return "due"

    def _quits(self) -> bool:
        assert self._keys is not None
        try:
            typed = os.read(self._keys, 1024)
        except OSError:  # The terminal is gone.
            typed = b""
        if not typed:
            self._keys = None
        return b"q" in typed or b"Q" in typed

    def _heed(self) -> bool:
        heard = set(os.read(self._wakeup[0], 1024))
        if signal.SIGTSTP in heard:
            self._give_back()
            with _as_before(signal.SIGTSTP):
                os.kill(os.getpid(), signal.SIGTSTP)
            # In the foreground again; SIGCONT left a byte in the pipe, too.
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup[0], 1024)
            self._take()
        elif signal.SIGCONT in heard:
            # Stopped by SIGSTOP, which cannot be caught: another program may have changed the terminal.
            tty.setcbreak(self._out, termios.TCSANOW)
            self._write(_HIDE + _CLEAR)
        elif signal.SIGWINCH in heard:
            self._write(_CLEAR)
        return bool(heard)

    def _listen(self) -> None:
        read, write = self._wakeup = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        self._last_wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (*_ENDING, *_HEARD):
            if (before := signal.getsignal(number)) in (signal.SIG_IGN, None):
                continue
            self._handlers[number] = before
            signal.signal(number, _end if number in _ENDING else _nothing)
            # Other signals do not interrupt system calls; the wake-up pipe still wakes `select`.
            signal.siginterrupt(number, number in _ENDING)

    def _take(self) -> None:
        # In the background this stops the process until it is in the foreground: the modes before that are
        # those of a shell that edits a line.
        termios.tcdrain(self._out)
        self._modes = termios.tcgetattr(self._out)
        tty.setcbreak(self._out, termios.TCSANOW)
        self._write(_ENTER + _HIDE + _CLEAR)

    def _give_back(self) -> None:
        """Restore the terminal; do nothing if it is gone."""
        if self._modes is None:
            return
        with contextlib.suppress(GpudebugError):
            self._write(_LEAVE)
        with contextlib.suppress(termios.error):
            # Keys typed at this screen are not for the next program.
            termios.tcflush(self._out, termios.TCIFLUSH)
            termios.tcsetattr(self._out, termios.TCSANOW, self._modes)
        self._modes = None

    def _write(self, text: str) -> None:
        """Write at once, past every buffer: one could hold the rest of an interrupted frame."""
        rest = memoryview(text.encode(self._encoding, "backslashreplace"))
        while rest:
            try:
                rest = rest[os.write(self._out, rest) :]
            except BlockingIOError:  # Another program made the terminal non-blocking.
                select.select([], [self._out], [])
            except OSError as e:
                raise GpudebugError(
                    f"cannot write to the terminal: {e.strerror}", next="gpudebug status"
                ) from None


def _deafen() -> None:
    """Ignore a second signal until the terminal is restored."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def _end(number: int, _frame: FrameType | None) -> None:
    _deafen()
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise _EndSignal(number)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: `_heed` reads the signal from the wake-up pipe."""


@contextlib.contextmanager
def _as_before(number: int) -> Iterator[None]:
    handler = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, handler)
