"""How logs say what their numbers are of, one case a mechanism, each with what a careful person reads."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

import pytest

from gpudebug.core.trainlog.reader import LogReader, LogSummary

LOSSES = (2.5, 2.1, 1.7, 1.2, 0.9, 0.7)


@dataclass(frozen=True)
class Case:
    """`last` is the training loss printed last; `None` of steps and rate is not looked at."""

    name: str
    text: str
    last: float | None
    steps: int | None = None
    per_s: float | None = None
    trend: str = "CONVERGING"


def each(template: str, losses: tuple[float, ...] = LOSSES) -> str:
    """`template` for each loss, with {i} from 0, {n} from 10 in tens, {e} from 1."""
    return "".join(template.format(loss=loss, i=i, n=10 * i + 10, e=i + 1) for i, loss in enumerate(losses))


def rounds(*, between: str, total: int = 20) -> str:
    """Three epochs of two rows, and two rows in the same form, of another course, after `between`."""
    rows = "step 10/20 - loss: {0:.2f}\nstep 20/20 - loss: {1:.2f}\n"
    evaluated = rows.replace("/20", f"/{total}")
    return "".join(
        f"Epoch {i + 1}/3\n{rows.format(loss, loss - 0.1)}{between}\n{evaluated.format(5 + i, 6 + i)}"
        for i, loss in enumerate(LOSSES[:3])
    )


def bars(label: str, frames: tuple[tuple[int, int], ...], total: int, rest: str = "") -> str:
    return "".join(
        f"\r{label}{100 * n // total:3}%|#####     | {n}/{total} [00:{at:02}<00:10,  5.00it/s{rest}]"
        for n, at in frames
    )


NESTED = "".join(
    f"\rTraining epochs: {epoch * 25}%|#| {epoch}/4 [00:{5 * epoch:02}<00:10,  5.00s/epoch, loss={LOSSES[epoch]}]"
    + (bars("Training batches: ", ((0, 0), (6, 1)), 9) if epoch < 4 else "")
    for epoch in range(5)
)
NESTED_SELDOM = "".join(
    f"\rTraining epochs: {epoch * 16}%|#| {epoch}/6 [00:{5 * epoch:02}<00:10,  5.00s/epoch, loss={LOSSES[min(epoch, 5)]}]"
    + (bars("Training batches: ", ((0, 0),), 7) if epoch < 5 else "")
    for epoch in range(6)
)
TABLE = "Step      Train loss              Test loss               Test metric\n" + "".join(
    f"{1000 * i:<10}[{loss:.2e}, 5.00e-01]    [9.00e+00, 5.00e-01]    [1.40e+00]\n"
    for i, loss in enumerate(LOSSES)
)
BEST = "\nBest model at step 3000:\n  train loss: 1.15e-03\n  test loss: 1.15e-03\n"

CASES = (
    Case("an evaluation that a line announces", rounds(between="Eval begin..."), 1.6, 60),
    Case("one with another total", rounds(between="Running validation", total=25), 1.6, 60),
    Case("one that ends nothing", each("step {n}: loss {loss}\nEvaluating model...\naccuracy 0.5\n"), 0.7, 60),
    Case("a range between name and value", each("loss [1-{n}]: {loss}\n", (2.0, 1.0, -42.4)), -42.4),
    Case("a nan behind a range", each("avg. loss [1-{n}]: {loss}\n", (2.0, 1.0, nan)), nan, trend="NAN"),
    Case(
        "figures in a bar's description",
        bars("test_accuracy:   nan%: ", ((0, 0), (20, 4)), 100, ", loss=2.5")
        + bars("test_accuracy:  40.0%: ", ((60, 12), (100, 20)), 100, ", loss=0.7"),
        0.7,
        100,
        5.0,
    ),
    Case(
        "a bar that changes its words",
        bars("warmup: ", ((1, 0), (40, 8)), 100, ", loss=2.5") + bars("sample: ", ((41, 9), (100, 20)), 100, ", loss=0.7"),
        0.7,
        100,
    ),
    Case("bars of two units", NESTED, 0.9, 36, 1.8),
    Case(
        "a step of the epoch beside one of the run",
        "".join(f"STEP: {g % 8}/7 -- GLOBAL_STEP: {g}\n | > loss: {3 - g / 10:.1f}\n" for g in range(0, 24, 3)),
        0.9,
        22,
    ),
    Case("indexes from 0", each("Learning iteration {i}/6\n    loss: {loss}\n"), 0.7, 6),
    Case("bars within epochs that are redrawn too seldom", NESTED_SELDOM, 0.7, 35, 1.4),
    Case("a table that is apart", "Iterat #Evals   function value  axis ratio  t[m:s]\n" + each("  {n}    9{n} {loss}e-01 1.0e+00  0:0{i}.0\n"), None, 60, trend="UNKNOWN"),
    Case("a row of each step with a test", "step,train_loss,val_loss\n" + each("{i},{loss},1.5\n"), 0.7, 6),
    Case("microseconds a step", each("Epoch {e}/6\n20/20 - 0s - 980us/step - loss: {loss}\n"), 0.7, 120, 1 / 980e-6),
    Case("terms in brackets, summed", TABLE, 1.2, 5000),
    Case("a summary of the best hides nothing", TABLE.replace("7.00e-01", "nan") + BEST, nan, 5000, trend="NAN"),
    Case("the best in one line", each("Epoch {e}: loss = {loss}\n", (*LOSSES, nan)) + "Best epoch: 6, loss = 0.7\n", nan, trend="NAN"),
    Case(
        "a column that is 0 nearly throughout",
        "E    #       LOSS A  LOSS B  SCORE\n"
        + "".join(f"{i}   {50 * i}     {[0.0, 1.1, 0.0][min(i, 2)]:.2f}   {[60.0, 679.0, 0.5][min(i, 2)]:.2f}   0.5\n" for i in range(6)),
        0.5,
    ),
    Case(
        "records that name their split",
        each('{{"loss": {loss}, "step": {n}, "split": "train"}}\n{{"loss": 9{i}.0, "step": {n}, "split": "valid"}}\n'),
        0.7,
        60,
    ),
    Case("a count that begins again with a line between", "".join(each("Iteration: {i}0 loss {loss}\n") + f"epoch {e} over\n" for e in range(3)), 0.7),
    Case("a last frame that is not drawn", "".join("".join(f"Epoch [{e}/3]: [{n}/20]  {5 * n}%|## , loss={2.9 - e / 2 - n / 40:.2f} [00:00<00:00]\n" for n in range(1, 20)) + f"Engine: Epoch[{e}] Complete. Time taken: 00:00:01\n" for e in (1, 2, 3)), 0.92, 60),
    Case("a training that is ended in a batch", "Epoch 1/4\n50/50 - 1s - loss: 2.5\nEpoch 2/4\n50/50 - 1s - loss: 1.5\nEpoch 3/4\nBatch 7: Invalid loss, terminating training\n50/50 - 1s - loss: nan\n", nan, 108, trend="NAN"),
    Case("one whose row is drawn on", "Epoch 1/4\n 1/50 - loss: 2.5Batch 1: Invalid loss, terminating training\n50/50 - 1s - loss: nan\n", nan, 2, trend="NAN"),
    Case("once more on the other stream", each("step {n} loss {loss}\n" * 2), 0.7, 60),
    Case("a duration of the epoch", each("epoch {i} training [time: 0.07s, train loss: {loss}]\n"), 0.7),
    Case("two opponents", each("step {n} d_loss: {loss} g_loss: 1.{i}\n"), 0.7, 60, trend="UNKNOWN"),
    Case("a score at an iteration", each("Score at iteration {n} is {loss}\n"), 0.7, 60),
    Case("a duration behind the name of a loss", each("Fit TripletLoss_v{e} in {n}.5 seconds\n"), None, trend="UNKNOWN"),
    Case("a table without a loss", "step\teval/acc\n" + each("{i}\t{loss}\n"), None, 5, trend="UNKNOWN"),
    Case("tables that take turns", each("update,return\n{i},{n}.5\ncritic_loss_before,kl,update\n{loss},0.1,{i}\n"), None, 6, trend="UNKNOWN"),
    Case("a bar of something else", bars("Capturing graphs: ", ((0, 0), (20, 4), (60, 12)), 67), None, trend="UNKNOWN"),
    Case("the record of an epoch below its bar", "".join(bars(f"Epoch {e}: ", ((3, 1), (9, 9), (20, 20)), 20, f", loss={x:.2f}") + f"\nepoch={e} step={20 * e} metrics={{'loss': {x - 0.004:.4f}}}\n" for e, x in enumerate(LOSSES, 1)), 0.696, 120),
    Case("a bar without words for validation", "".join(bars("", ((2, 1), (10, 5), (20, 10)), 20, f", loss={x}") + "\n" + bars("", ((1, 0), (2, 1), (4, 2)), 4, f", loss={x + 3}") + "\n" for x in LOSSES), 0.7, 120),
    Case("epochs with their number before a bar", "".join(bars(f"Epochs {e}/3. Running Loss: {x}: ", ((1, 0), (9, 4), (20, 8)), 20) for e, x in enumerate(LOSSES[:3])), 1.7, 60),
    Case("an epoch and a step in brackets", "".join(f"[{e}, {n:5}] loss: {3 - e / 2 - n / 9e4:.3f}\n" for e in (1, 2, 3) for n in range(2000, 12001, 2000)), 1.367),
    Case("a range of batches", "".join(f"Epoch[{e}] Batch [{n}-{n + 20}]\tSpeed: 812.1 samples/sec\tcross-entropy={2.5 - e / 2 - n / 900:.4f}\n" for e in range(3) for n in range(0, 100, 20)), 1.4111),
    Case("a step by its index", "".join(f"i={n}/60 epoch={e} loss={3 - e / 2 - n / 90:.1f}\n" for e in range(3) for n in (20, 40, 60)), 1.3, 180),
    Case("an epoch's number ahead of its name", "".join(f"{e}-epoch ({n}/60): total loss {3 - e / 2 - n / 90:.1f}, parts: 1.0\n" for e in range(3) for n in (20, 40, 60)), 1.3, 180),
    Case("how long a step takes", each("epoch {i}\nTot: 4m10s | Step: {n}ms\ntrainLoss {loss}\n"), 0.7, trend="CONVERGING"),
    Case("the compiler of a library", "[1/2] /usr/bin/nvcc -c a.cu -o a.cuda.o\n[2/2] c++ a.cuda.o -shared -o a.so\n", None, trend="UNKNOWN"),
    Case("a named rate in steps", each("global step {n}/60, loss: {loss}, lr: 0.0{i}, speed: 4.{i} step/s\n"), 0.7, 60, 4.25),
    Case("a lower bound that rises", each("Epoch {e}: ELBO -{loss}\n"), -0.7, trend="UNKNOWN"),
    Case("a count of something else", "".join(f"Progress: {n}% ({759 * n // 100}/759 merges)\n" for n in range(40, 60)) + each("step {i}/50 | loss: {loss}\n"), 0.7, 6),
    Case("the batches that an error is of", "Train error last 800 batches: 0.515\n" * 3, None, trend="UNKNOWN"),
    Case("what a printed object holds", "RenderConfig(\n    parts={'colour_loss': 1.0, 'depth_loss': 0.5},\n    depth_loss=0.1,\n)\n", None, trend="UNKNOWN"),
    Case("an epoch that its own line ends", "".join(f"Epoch[{e}/3], Step[{n}/196], Loss: {3 - e / 2 - n / 900:.2f}\n" + f"-- Epoch[{e}/3], Loss: {2.9 - e / 2:.2f}\n" * (n == 100) for e in (1, 2, 3) for n in (0, 100)), 1.4, 588),
    Case("steps of prose beside those with a loss", "Epoch 1\n" + each("[step {e}] avg_loss={loss}\n") + "Epoch 2\n**Step 1: halve it**\n[step 7] avg_loss=0.6\n", 0.6, 7),
    Case("a count ahead of a word for a loss", "(3 (2 at) (1 (2 a) (2 loss)))\n(2 (2 no) (2 loss))\n", None, trend="UNKNOWN"),
    Case("the level of a logger", "09:10:11 ERROR: 30-day window without rows\n", None, trend="UNKNOWN"),
    Case("an epoch and its batch without a name", each("[INFO]: {i}/5     0/16   {loss}\n[INFO]: {i}/5     12/16   {loss}\n"), None, 92, trend="UNKNOWN"),
    Case("a sign right behind a tab", each("{i}:\t-{i}.{i}51\n", (*LOSSES, 0.5)), -6.651, trend="CONVERGING"),
)  # fmt: skip


def read(text: str) -> LogSummary:
    reader = LogReader()
    reader.feed(text.encode())
    return reader.summary()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_reads_the_mechanism(case: Case) -> None:
    found = read(case.text)
    assert found.trend == case.trend
    assert found.last == case.last or (isnan(case.last or 0) and isnan(found.last or 0))
    assert case.steps is None or found.steps == case.steps
    assert case.per_s is None or found.steps_per_s == pytest.approx(case.per_s, rel=0.02)


def test_durations_and_compilers_count_no_steps() -> None:
    named = {case.name: read(case.text) for case in CASES}
    assert named["how long a step takes"].steps is None
    assert named["the compiler of a library"].progress is None


@pytest.mark.parametrize(
    "name",
    [
        "a count that begins again with a line between",
        "an epoch and a step in brackets",
        "a range of batches",
    ],
)
def test_batches_of_an_unknown_number_an_epoch_are_no_steps_and_their_epochs_are_known(name: str) -> None:
    found = read(next(case.text for case in CASES if case.name == name))
    assert found.steps is None
    assert found.progress is not None
    assert (found.progress.unit, found.progress.done) == ("epochs", 3)


def test_a_bar_at_the_epochs_own_number_counts_epochs() -> None:
    text = "".join(
        bars(f"Epoch {n}/50: ", ((n, 2 * n),), 50, f", train_loss_step={9 - n / 10:.2f}")
        for n in range(1, 51)
    )
    progress = read(text).progress
    assert progress is not None
    assert (progress.unit, progress.done, progress.total) == ("epochs", 50, 50)


def test_what_only_the_last_bar_shows_is_no_count_of_steps() -> None:
    assert read(bars("Epoch 2/2: ", ((60, 2),), 60, ", train_loss: 0.1")).progress is None
    assert read(bars("Epoch 0/2: ", ((60, 2),), 60, ", train_loss: 0.1")).steps == 60


def test_rows_from_0_are_counted() -> None:
    progress = read("epoch,accuracy,f1\n" + each("{i},0.{n},0.5\n")).progress
    assert progress is not None
    assert (progress.unit, progress.done) == ("epochs", 6)


def test_validation_that_is_reported_alone_is_named_and_judges_nothing() -> None:
    found = read(
        "INFO: Started training, reporting errors on validation set\n"
        + each("INFO: Epoch {i}: loss={loss}\n")
    )
    assert (found.loss_name, found.trend, found.last) == ("validation loss", "UNKNOWN", 0.7)


def test_durations_of_parts_are_the_wait_for_data() -> None:
    metrics = (
        "{{'time_sample_batch': 0.006, 'time_algorithm_update': 0.05, 'loss': {loss}, 'time_step': 0.058}}"
    )
    found = read(each("epoch={e} step={n} metrics=" + metrics + "\n"))
    assert (found.data_s, found.steps_per_s) == (pytest.approx(0.006), pytest.approx(1 / 0.058))


def test_epochs_of_appended_runs_are_those_of_the_last() -> None:
    runs = each("Epoch {i}: loss {loss}\n", (3.0, 2.0, 1.0, 0.5, 0.4, 0.3, 0.25, 0.2)) + each(
        "Epoch {i}: loss {loss}\n", (3.1, 2.2, 1.5, 0.9, 0.6, 0.5)
    )
    found = read(runs)
    assert (found.progress and found.progress.done, found.trend, found.last) == (6, "CONVERGING", 0.5)
    inner = "".join(each(f"epoch {{e}} loss {2 - i / 9:.2f}{{i}}\n", LOSSES[:4]) for i in range(9))
    assert read(inner).trend == "CONVERGING"


def test_a_bar_goes_on_below_a_line_that_was_stamped_long_ago() -> None:
    stamped = "INFO 2026-01-02 10:00:{at:02} train.py:9 step:{n} loss:0.5\n"
    frames = bars("Training: ", tuple((n, n // 5) for n in range(1, 100)), 100)
    text = stamped.format(at=1, n=1) + frames + stamped.format(at=21, n=100)
    assert read(text).progress.per_s == pytest.approx(5.0, rel=0.1)


def test_a_record_goes_before_the_bar_that_went_on_after_it() -> None:
    text = "".join(
        bars(f"Epoch {e}: ", ((3, 1), (20, 9)), 20, f", loss={loss:.2f}")
        + f"\nepoch={e} {{'loss': {loss}4}}\n"
        for e, loss in enumerate(LOSSES, 1)
    )
    assert read(text + bars("Epoch 7: ", ((3, 1), (9, 4)), 20, ", loss=0.69")).last == 0.74


def test_a_list_of_what_a_library_runs_on_names_no_framework() -> None:
    assert (
        read(
            "Supported: tensorflow.compat.v1, tensorflow, jax, paddle.\n" + each("step {n} loss {loss}\n")
        ).framework
        is None
    )


def test_a_bar_without_words_of_a_library_for_environments_counts_their_steps() -> None:
    progress = read("[skrl:INFO] Seed: 0\n" + bars("", ((10, 1), (300, 15), (600, 30)), 600)).progress
    assert progress is not None
    assert (progress.unit, progress.done, progress.per_s) == (
        "environment steps",
        600,
        pytest.approx(20, rel=0.05),
    )
    assert read(bars("", ((10, 1), (300, 15), (600, 30)), 600)).progress.unit == "iterations"


def test_steps_a_second_of_an_environment_are_none_of_the_training() -> None:
    block = "Learning iteration {i}/9\nSteps per second: 2812\nMean value loss: {loss}\n"
    assert read("rsl_rl/runner\n" + each(block)).steps_per_s is None


@pytest.mark.parametrize(("took", "per_s"), [("0.02", None), ("0.12", pytest.approx(1 / 0.12))])
def test_a_duration_of_few_digits_says_no_rate(took: str, per_s: float | None) -> None:
    assert read(each(f"step {{n}} loss {{loss}} step time: {took}s\n")).steps_per_s == per_s


def test_a_total_below_the_count_plans_nothing() -> None:
    progress = read(
        "".join(f"Epoch[{n // 20 + 1}] Iteration[{n}/20] Loss: 0.{99 - n}\n" for n in range(5, 61, 5))
    ).progress
    assert progress is not None
    assert (progress.done, progress.total) == (60, None)


STAMPED = "2026-01-02 {hour}:00:{at:02} INFO step {n} loss {loss:.2f}\n"


def stamped(*hours: int) -> str:
    count = range(1, 41)
    return "".join(
        STAMPED.format(hour=hours[(n - 1) * len(hours) // 40], at=n, n=n, loss=3 - n / 20) for n in count
    )


def test_a_clock_that_goes_back_gives_no_rate() -> None:
    assert (read(stamped(14)).clock_back, read(stamped(14)).progress.per_s) == (False, pytest.approx(1))
    back = read(stamped(14, 13))
    assert (back.clock_back, back.progress.done, back.progress.per_s, back.last) == (True, 40, None, 1.0)
    odd = STAMPED.format(hour=9, at=1, n=40, loss=1.0)
    assert not read(stamped(14) + odd).clock_back


def test_epochs_out_of_order_have_no_trend() -> None:
    rows = [f"{n},{3 - n / 20:.2f}\n" for n in range(1, 41)]
    found = read("epoch,train_loss\n" + "".join(rows[i * 17 % 40] for i in range(40)))
    assert (found.disordered, found.trend, found.progress.done) == (True, "UNKNOWN", 40)
    assert not read("epoch,train_loss\n" + "".join(rows[:20] + rows)).disordered


def test_a_second_log_behind_the_first_is_told() -> None:
    first = "".join(f"{{'loss': {3 - n / 20:.2f}, 'epoch': {n}}}\n" for n in range(1, 21))
    assert read(first + stamped(14)).followed
    assert not read(first + each("{{'eval_loss': {loss}}}\n")).followed
    beside = "".join(f"step {n} loss {3 - n / 20:.2f}\n{{'loss': {3 - n / 20:.3f}}}\n" for n in range(1, 21))
    assert not read(beside).followed


@pytest.mark.parametrize("end", ["</html>\n", ""])
def test_a_page_in_a_log_is_left_out(end: str) -> None:
    page = "<!DOCTYPE html>\n<html><h1>502</h1>\n<p>step 3 loss 0.5</p>\n" + end
    found = read(stamped(14) + page)
    assert (found.pages, found.points, found.last, found.progress.done) == (1, 40, 1.0, 40)
    assert end == "" or read(page + stamped(14)).points == 40


def test_a_bar_that_is_drawn_at_its_beginnings_alone_counts_nothing() -> None:
    rows = "".join(
        bars("", ((0, 0),), 19) + f"\r      {e}    {loss}   0.01\n" for e, loss in enumerate(LOSSES, 1)
    )
    progress = read("  epoch    train_loss     dur\n" + rows).progress
    assert progress is not None
    assert (progress.unit, progress.done) == ("epochs", 6)


def test_a_duration_of_several_steps_is_none_of_one() -> None:
    assert (
        read(each("Iteration {n}, KL divergence {loss}, 50 iterations in 0.1{i}5 sec\n")).steps_per_s is None
    )


def test_an_epoch_0_that_took_a_time_is_one() -> None:
    progress = read(each("EPOCH {i}: training on 60000 words took 0.{n}s\n")).progress
    assert progress is not None
    assert (progress.unit, progress.done) == ("epochs", 6)


@pytest.mark.parametrize(
    ("raised", "trend"),
    [
        ("ValueError: Loss is not finite and patience is exhausted.", "NAN"),
        ("FloatingPointError: Loss became infinite or NaN at iteration=60!", "NAN"),
        ("ValueError: nan loss encountered", "NAN"),
        ("ValueError: the loss needs targets. Got inf", "CONVERGING"),
        ("KeyError: 'loss'", "CONVERGING"),
    ],
)
def test_a_program_that_ends_itself_by_its_loss_lost_it(raised: str, trend: str) -> None:
    frame = 'Traceback (most recent call last):\n  File "a.py", line 3, in fit\n    check(loss)\n'
    found = read(each("step {n} loss {loss}\n") + frame + raised + "\n")
    assert (found.trend, found.failure is not None) == (trend, True)


def test_a_total_that_grows_plans_nothing() -> None:
    row = "| total/steps    | {n}000  |\n| total/episodes | {n}      |\n| total/steps_per_second | 62.5 |\n"
    progress = read(each(row)).progress
    assert progress is not None
    assert (progress.unit, progress.total, progress.per_s) == ("episodes", None, None)


def test_the_name_of_an_environment_is_no_framework() -> None:
    line = '  File "/home/x/envs/tensorflow/lib/python3.8/site-packages/sklearn/ridge.py", line 76, in fit\n'
    assert read(line).framework is None


def test_dips_that_recur_are_no_loss() -> None:
    course = [loss / (20 if i % 5 == 0 else 1) for i, loss in enumerate(2.4 - 0.07 * i for i in range(30))]
    assert read("".join(f"step {i + 1} loss {loss}\n" for i, loss in enumerate(course))).trend == "CONVERGING"


def test_bars_of_a_loop_between_the_rounds_do_not_count_though_they_are_drawn_more_often() -> None:
    """Two bars without words, and the epoch's figures behind the last frame of the second."""

    def bar(total: int, frames: int) -> str:
        at = [total * i // frames for i in range(frames + 1)]
        return "".join(f"\r{100 * n // total:3d}%|#   | {n}/{total} [00:01<00:01, 20.00it/s]" for n in at)

    epochs = [
        bar(20, 4) + "\n" + bar(60, 12) + "\n" + bar(60, 12) + f"epoch   {e} | train_loss: {5 * 0.8**e:.4f}\n"
        for e in range(6)
    ]
    found = read("".join(epochs))
    assert found.progress is not None
    assert (found.progress.done, found.progress.total) == (120, 120)
    assert (found.loss_name, found.points, str(found.trend)) == ("train_loss", 6, "CONVERGING")


def test_settings_that_are_printed_twice_are_no_steps() -> None:
    stages = "".join(
        f"{name}:\n  run:\n    iterations: {n}\n    burn_in: 100\n" for name, n in (("a", 10), ("b", 90))
    )
    assert read(f"config:\n{stages}start\n").progress is None


def test_a_bar_that_was_full_before_the_training_and_is_drawn_after_it_leads_nothing() -> None:
    """Queries are loaded, 30 iterations are made in each of three epochs, and the queries are answered."""
    queries = "".join(bars("", ((n, 1),), 100, "") for n in (50, 100))
    epochs = "".join(
        f"Epoch {e}:\n" + "".join(bars("", ((n, n),), 30, "") for n in range(1, 31)) for e in range(3)
    )
    progress = read(queries + epochs + queries).progress
    assert progress is not None
    assert (progress.done, progress.total) == (90, 90)


def test_numbers_without_a_name_a_total_and_a_loss_are_no_steps() -> None:
    filling = "".join(
        f"00:0{i} I shuffle.cc:4] Filling up the buffer (this may take a while): {n} of -2\n"
        for i, n in enumerate((17, 33, 52))
    )
    progress = read(each("EPOCH {e} COMPLETED\n" + filling)).progress
    assert progress is not None
    assert (progress.unit, progress.done) == ("epochs", 6)


def test_a_setting_of_the_steps_own_name_before_them_is_none() -> None:
    found = read("iter: 2500\n" + each("ITER {n}: loss: {loss}\n"))
    assert found.steps == 60


def test_epochs_from_0_are_counted_though_they_are_announced_by_another_name() -> None:
    epochs = "".join(
        f"Starting epoch {e}\n" + "".join(f"Epoch {e}, Step {n}, loss {x - n / 500:.2f}\n" for n in (25, 50))
        for e, x in enumerate(LOSSES)
    )
    for text in (epochs, epochs + "Starting epoch 6\n"):
        progress = read(text).progress
        assert progress is not None
        assert (progress.unit, progress.done) == ("epochs", 6)


def test_seconds_behind_the_name_of_an_epoch_are_no_number_of_one() -> None:
    found = read(each("Epoch {e} Loss {loss}\nTime taken for 1 epoch: 2{i}.25 secs\n")).progress
    assert found is not None
    assert (found.unit, found.done) == ("epochs", 6)
    assert found.epoch_s == pytest.approx(22.75)


def test_a_short_bar_that_was_full_before_a_longer_one_is_not_the_training() -> None:
    sizes = bars("", ((0, 0), (45, 1), (100, 2)), 100)
    progress = read(sizes + "\nstarting\n" + bars("", ((0, 0),), 5000)).progress
    assert progress is not None
    assert (progress.done, progress.total) == (0, 5000)


def test_a_count_that_begins_again_for_no_reason_that_is_told_counts_nothing() -> None:
    """A loss is printed in each of three tasks, from its first iteration on, and falls all the while."""
    tasks = "".join(
        f"training batch {task}\n"
        + "".join(f"it: {n}, avg. loss: {6 - task - n / 900:.3f}\n" for n in range(1, 502, 100))
        for task in range(3)
    )
    found = read(tasks)
    assert (found.progress, found.steps, str(found.trend)) == (None, None, "CONVERGING")


def test_epochs_that_are_named_here_and_there_are_not_counted() -> None:
    stops = "".join(
        f"[Fold {e} Ep 01] tr_loss=0.{9 - e}\nFold {e} done: best_AUC=0.6 epoch={n}\n"
        for e, n in enumerate((8, 33, 34, 59))
    )
    assert read(stops).progress is None


def test_an_epoch_that_is_whole_once_among_fractions_counts_nothing() -> None:
    assert read(each("{{'loss': {loss}, 'epoch': 0.{i}}}\n")).progress is None


def test_a_bar_of_data_that_are_processed_is_not_the_training() -> None:
    assert read(bars("Processing: ", ((0, 0), (50, 1), (100, 2)), 100)).progress is None
