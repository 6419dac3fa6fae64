"""What a foreign stack is for: its phase, its names, the user's line."""

from __future__ import annotations

from gpudebug.core.inside.attached import foreign_frames
from gpudebug.core.inside.attached.foreign_frames import RawFrame, fold, read_raw, trainers
from gpudebug.training.probe.gpudebug_probe import frames as probes

TORCH = "/venv/lib/python3.11/site-packages/torch/"
LOADER = RawFrame("_SingleProcessDataLoaderIter._next_data", TORCH + "utils/data/dataloader.py", 785)
CALL = RawFrame("Module._call_impl", TORCH + "nn/modules/module.py", 1794)
MAIN = RawFrame("main", "/home/u/project/train.py", 12)


def test_the_marks_are_those_of_the_probe() -> None:
    assert foreign_frames.MARKS == probes.MARKS
    assert foreign_frames.LOADER == probes.LOADER
    assert foreign_frames.WORKER == probes.WORKER
    assert foreign_frames.CHILD == probes.CHILD


def test_a_batch_that_is_loaded_is_data_and_its_line_the_users() -> None:
    found = fold([MAIN, LOADER, RawFrame("Slow.__getitem__", "/home/u/project/data.py", 6)])
    assert found.phase == "data"
    assert found.loader == foreign_frames.OWN_PROCESS
    assert (found.names[found.at], found.line) == ("project/data.py:Slow.__getitem__", 6)


def test_a_forward_within_a_backward_is_backward_and_a_model_in_a_loader_data() -> None:
    backward = RawFrame("Tensor.backward", TORCH + "_tensor.py", 623)
    assert fold([MAIN, backward, CALL]).phase == "backward"
    assert fold([MAIN, CALL, backward]).phase == "forward"
    assert fold([MAIN, LOADER, CALL]).phase == "data"
    step = RawFrame("SGD.step", TORCH + "optim/sgd.py", 3)
    assert fold([MAIN, step]).phase == "optimizer"
    assert fold([MAIN, RawFrame("StepLR.step", TORCH + "optim/lr_scheduler.py", 3)]).phase == "other"


def test_what_only_passes_a_call_on_is_not_shown() -> None:
    assert fold([MAIN, CALL]).names == ("project/train.py:main",)


def test_pytorch_in_its_own_source_tree_is_known() -> None:
    call = RawFrame("Module._call_impl", "/opt/pytorch/pytorch/torch/nn/modules/module.py", 1)
    assert fold([MAIN, call]).phase == "forward"


def test_a_program_that_is_installed_as_a_whole_shows_the_package_that_it_begins_in() -> None:
    place = "/venv/lib/python3.11/site-packages/"
    stack = [
        RawFrame("<module>", "/venv/bin/lerobot-train", 8),
        RawFrame("train", place + "lerobot/train.py", 40),
        RawFrame("update", place + "lerobot/policy.py", 7),
        RawFrame("loads", "/usr/lib/python3.11/json/__init__.py", 1),
        RawFrame("get", place + "requests/api.py", 70),
    ]
    found = fold(stack)
    assert (found.names[found.at], found.line) == ("lerobot/policy.py:update", 7)


def test_a_loader_worker_begins_where_it_loads() -> None:
    stack = [
        MAIN,
        RawFrame("BaseProcess._bootstrap", "/usr/lib/python3.11/multiprocessing/process.py", 314),
        RawFrame("_worker_loop", TORCH + "utils/data/_utils/worker.py", 300),
        RawFrame("decode", "/home/u/project/data.py", 9),
    ]
    found = fold(stack)
    assert found.worker
    assert found.names == ("_utils/worker.py:_worker_loop", "project/data.py:decode")


def test_a_process_pools_child_is_no_loader_worker() -> None:
    child = RawFrame("BaseProcess._bootstrap", "/usr/lib/python3.11/multiprocessing/process.py", 314)
    found = fold([MAIN, child, RawFrame("step", "/home/u/env.py", 4)])
    assert not found.worker
    assert found.names[0] == "multiprocessing/process.py:BaseProcess._bootstrap"


def test_a_deep_stack_keeps_its_ends_and_the_users_frame() -> None:
    deep = [RawFrame(f"f{n}", "/usr/lib/python3.11/json/decoder.py", n) for n in range(1, 101)]
    found = fold([MAIN, *deep])
    assert len(found.names) == foreign_frames.INNERMOST + foreign_frames.OUTERMOST
    assert found.names[found.at] == "project/train.py:main"


PACKAGES = "/venv/lib/python3.11/site-packages/"
LEARN = [MAIN, RawFrame("PPO.learn", PACKAGES + "sb3/ppo.py", 300)]
UPDATE = RawFrame("PPO.train", PACKAGES + "sb3/ppo.py", 200)
COLLECT = [
    *LEARN,
    RawFrame("collect", PACKAGES + "sb3/base.py", 70),
    RawFrame("f", PACKAGES + "numpy/a.py", 1),
]
BACKWARD = [
    *LEARN,
    UPDATE,
    RawFrame("Tensor.backward", TORCH + "_tensor.py", 1),
    RawFrame("g", PACKAGES + "h/a.py", 1),
]
STEP = [*LEARN, UPDATE, RawFrame("Adam.step", TORCH + "optim/adam.py", 1)]


def test_the_framework_that_trains_below_a_line_is_looked_into() -> None:
    below = trainers([COLLECT, BACKWARD, STEP])
    assert list(below.values()) == [frozenset({"sb3"})]
    found = fold(COLLECT, below)
    assert (found.names[found.at], found.line, found.packaged) == ("sb3/base.py:collect", 70, True)
    # Another line of the same function says itself what it does.
    other = fold([MAIN._replace(line=20), *COLLECT[1:]], below)
    assert (other.names[other.at], other.packaged) == ("project/train.py:main", False)


def test_a_line_that_only_has_the_backward_done_stays_the_place() -> None:
    assert trainers([COLLECT, BACKWARD]) == {}
    assert trainers([[MAIN, *STEP[3:]], [MAIN, *BACKWARD[3:]]]) == {}
    assert not fold(COLLECT, {}).packaged


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
