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
    from rich.console import RenderableType

REDRAWN_EVERY_S = 1.0
LINE_EVERY_S = 10.0
_HEEDS_EVERY_S = 0.1
"""How soon a new size of the window, or Ctrl-Z, is noticed."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_HEARD = (signal.SIGTSTP, signal.SIGCONT)


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
        seen, due = look(), time.monotonic() + REDRAWN_EVERY_S
        while True:
            terminal.draw(frame(seen, *terminal.size, terminal.unicode))
            if terminal.quits(due):
                return
            if time.monotonic() >= due:
                seen, due = look(), time.monotonic() + REDRAWN_EVERY_S


class _EndSignal(BaseException):
    """A signal that ends the program; not an `Exception`, which a handler on the way could catch."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Terminal:
    """The terminal of standard output: rich's alternate screen, keys as they are typed, no echo."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._out = sys.stdout.fileno()
        self._keys: int | None = 0 if os.isatty(0) else None
        self._console = Console(force_terminal=True, highlight=False)
        self._live = Live(
            console=self._console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._modes: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._heard: int | None = None

    def __enter__(self) -> _Terminal:
        for number in (*_ENDING, *_HEARD):
            if (before := signal.getsignal(number)) not in (signal.SIG_IGN, None):
                self._handlers[number] = before
                signal.signal(number, _end if number in _ENDING else self._hear)
        try:
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        _deafen()
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @property
    def unicode(self) -> bool:
        """Whether it shows more than ASCII."""
        return draws(sys.stdout.encoding or "ascii")

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines now; 80 and 24 if unknown."""
        try:
            size = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        return size.columns or 80, size.lines or 24

    def draw(self, renderable: RenderableType) -> None:
        """Fill the screen; what is too large is cut."""
        self._console.size = self.size
        # Another program may have made the terminal non-blocking.
        os.set_blocking(self._out, True)
        try:
            self._live.update(renderable, refresh=True)
        except OSError as e:
            raise GpudebugError(
                f"cannot write to the terminal: {e.strerror}", next="gpudebug status"
            ) from None

    def quits(self, until: float) -> bool:
        """Wait until a time of the monotonic clock, or for a cause to draw; tell if `q` was pressed."""
        drawn = self.size
        while (left := until - time.monotonic()) > 0 and self.size == drawn:
            keys = [] if self._keys is None else [self._keys]
            if select.select(keys, [], [], min(left, _HEEDS_EVERY_S))[0] and self._typed_q():
                return True
            if self._heard is not None:
                self._heed()
                break
        return False

    def _typed_q(self) -> bool:
        assert self._keys is not None
        try:
            typed = os.read(self._keys, 1024)
        except OSError:  # The terminal is gone.
            typed = b""
        if not typed:
            self._keys = None
        return b"q" in typed or b"Q" in typed

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self._heard = number

    def _heed(self) -> None:
        number, self._heard = self._heard, None
        if number == signal.SIGTSTP:
            self._give_back()
            with _as_before(signal.SIGTSTP):
                os.kill(os.getpid(), signal.SIGTSTP)
            self._take()
        else:
            # Stopped by SIGSTOP, which cannot be caught: another program may have changed the terminal.
            tty.setcbreak(self._out, termios.TCSANOW)
            self._console.show_cursor(False)

    def _take(self) -> None:
        # In the background this stops the process until it is in the foreground: the modes before that are
        # those of a shell that edits a line.
        termios.tcdrain(self._out)
        self._modes = termios.tcgetattr(self._out)
        tty.setcbreak(self._out, termios.TCSANOW)
        self._live.start()

    def _give_back(self) -> None:
        """Restore the terminal; do nothing if it is gone."""
        if self._modes is None:
            return
        with contextlib.suppress(OSError):
            self._live.stop()
        with contextlib.suppress(termios.error):
            # Keys typed at this screen are not for the next program.
            termios.tcflush(self._out, termios.TCIFLUSH)
            termios.tcsetattr(self._out, termios.TCSANOW, self._modes)
        self._modes = None


def _deafen() -> None:
    """Ignore a second signal until the terminal is restored."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def _end(number: int, _frame: FrameType | None) -> None:
    _deafen()
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise _EndSignal(number)


@contextlib.contextmanager
def _as_before(number: int) -> Iterator[None]:
    handler = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, handler)
