"""py-spy's raw format, as py-spy 0.4.3 prints it."""

from __future__ import annotations

from gpudebug.core.inside.attached.raw_stacks import RawFrame, read_raw

LINE = (
    "thread (30303): MainThread;<module> (/src/job.py:18);main (/src/job.py:12);"
    "_MapDatasetFetcher.fetch.<locals>.<listcomp> "
    "(/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py:54) 76"
)


def test_a_line_is_a_thread_its_frames_and_how_often_it_was_seen() -> None:
    (stack,) = read_raw(LINE + "\n")
    assert (stack.tid, stack.main, stack.times) == (30303, True, 76)
    assert stack.frames[0] == RawFrame("<module>", "/src/job.py", 18)
    assert stack.frames[-1].name == "_MapDatasetFetcher.fetch.<locals>.<listcomp>"


def test_a_thread_that_only_python_numbers_has_no_number_in_proc() -> None:
    (stack,) = read_raw("thread (0x7FA8B05AD740): MainThread;<module> (/src/job.py:18) 3")
    assert (stack.tid, stack.main, stack.times) == (None, True, 3)


def test_a_frame_without_a_line_and_a_thread_without_a_name_are_read() -> None:
    (stack,) = read_raw("thread (7);<shim> (<string>) 1")
    assert (stack.main, stack.frames) == (False, (RawFrame("<shim>", "<string>", 0),))


def test_a_name_of_a_thread_may_hold_the_separator_and_a_path_brackets() -> None:
    (stack,) = read_raw("thread (7): a;b;run (/odd (dir)/a b.py:3) 2")
    assert stack.frames == (RawFrame("run", "/odd (dir)/a b.py", 3),)


def test_what_is_no_stack_is_left_out() -> None:
    assert read_raw("py-spy> Sampling process\n\nthread (x 5\nmain (/a.py:1) 3\n") == []
