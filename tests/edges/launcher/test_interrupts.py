from __future__ import annotations

import os
import select
import signal
import threading

import pytest

from gpudebug.edges.launcher.interrupts import (
    Interrupts,
    counting_interrupts,
    forget_held,
    holding_interrupts,
    naming_interrupts,
    origin,
    raise_held,
)


def test_presses_are_counted_and_wake_the_waiter() -> None:
    before = signal.getsignal(signal.SIGINT)
    with counting_interrupts() as interrupts:
        assert interrupts.fd is not None
        assert select.select([interrupts.fd], [], [], 0)[0] == []
        for press in (1, 2):
            os.kill(os.getpid(), signal.SIGINT)
            assert interrupts.count == press
        assert select.select([interrupts.fd], [], [], 0)[0] == [interrupts.fd]
    assert signal.getsignal(signal.SIGINT) is before


def test_what_is_held_has_its_effect_once_and_later() -> None:
    told: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: told.append(number))
    try:
        with holding_interrupts() as pressed:
            os.kill(os.getpid(), signal.SIGTERM)
            assert (pressed.count, told) == (1, [])
        assert told == []
        raise_held()
        raise_held()
        assert told == [signal.SIGTERM]
        with holding_interrupts():
            pass
        raise_held()
        assert told == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_was_asked_to_end_has_ended_and_a_jobs_own_end_still_comes() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with holding_interrupts():
            signal.raise_signal(number)
    forget_held()
    with counting_interrupts() as interrupts:
        raise_held()
        assert (interrupts.count, interrupts.last) == (1, signal.SIGTERM)
    with holding_interrupts():
        signal.raise_signal(signal.SIGINT)
    forget_held()
    raise_held()


def test_an_ignored_interrupt_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with counting_interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGINT)
            assert interrupts.count == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_leaves_the_handler_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[Interrupts] = []

    def body() -> None:
        with counting_interrupts() as interrupts:
            seen.append(interrupts)
            assert signal.getsignal(signal.SIGINT) is before

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert seen[0].fd is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_time_out_or_a_closed_terminal_counts_as_ctrl_c(number: signal.Signals) -> None:
    # Under nohup the tests themselves ignore SIGHUP, and what is ignored stays so.
    around = signal.signal(number, signal.SIG_DFL)
    try:
        with counting_interrupts() as interrupts:
            os.kill(os.getpid(), number)
            assert interrupts.count == 1
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, around)


def test_interrupts_come_from_the_keyboard_unless_they_are_named() -> None:
    with naming_interrupts(lambda: "by the cluster"):
        assert origin() == "by the cluster"
    assert origin() == "from the keyboard"


def test_a_signal_that_comes_after_the_jobs_end_is_waited_for_where_a_scheduler_sends_it() -> None:
    with counting_interrupts() as interrupts:
        assert not interrupts.reached_all()
        with naming_interrupts(lambda: "by the cluster"):
            late = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
            late.start()
            assert interrupts.reached_all()
            late.join()
        os.kill(os.getpid(), signal.SIGTERM)
        assert not interrupts.reached_all()
