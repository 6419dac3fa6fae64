"""Whether a change reached the program, by what it shows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.change import intervention
from gpudebug.core.records import LoadedFiles
from gpudebug.core.verdict.took_effect import (
    ChangeEffect,
    ShownConfiguration,
    effect_of,
    moved_knobs,
    same_value,
)
from gpudebug.core.words import Result

PASS, FAIL, SKIPPED = Result.PASS, Result.FAIL, Result.SKIPPED
OLD = ("python", "train.py", "--batch_size=8", "--amp", "--lr", "0.1")


def found(change: str, before: dict[str, str], after: dict[str, str]) -> ChangeEffect:
    parsed = intervention.parse(change)
    argv = parsed.apply(OLD, {}, None).argv
    return effect_of(parsed, [ShownConfiguration(OLD, before)], [ShownConfiguration(argv, after)])


BATCH8, BATCH16 = {"batch_size": "8"}, {"batch_size": "16"}
# change, printed by the baseline, printed by the trial, result, what is said
TABLE: list[tuple[str, dict[str, str], dict[str, str], Result, str]] = [
    ("--set --batch_size=16", BATCH8, BATCH16, PASS, "batch_size: 16"),
    ("--set --batch-size=16", BATCH8, BATCH16, PASS, "batch_size: 16"),
    ("--set --batch_size=16", {}, {"train.batch_size": "16"}, PASS, "train.batch_size: 16"),
    (
        "--set --batch_size=16",
        BATCH8,
        BATCH8,
        FAIL,
        "--batch_size=16 was asked for, the program shows batch_size: 8",
    ),
    ("--set --batch_size=16", {}, BATCH8, FAIL, "--batch_size=16 was asked for"),
    ("--set --batch_size=16", BATCH8, {"batch_size": "12"}, FAIL, "--batch_size=16 was asked for"),
    (
        "--set --batch_size=16",
        {},
        {},
        SKIPPED,
        "--batch_size is on the command line, but the program printed no",
    ),
    (
        "--set --batch_size=16",
        {},
        {"a.batch_size": "8", "b.batch_size": "16"},
        SKIPPED,
        "--batch_size is on",
    ),
    ("--set --batch_size=16", BATCH8, {"batch_size_per_gpu": "8"}, SKIPPED, "--batch_size is on"),
    ("--set --lr=1e-2", {"lr": "0.1"}, {"lr": "0.01"}, PASS, "lr: 0.01"),
    (
        "--set --dtype=bf16",
        {"dtype": "torch.float32"},
        {"dtype": "torch.bfloat16"},
        PASS,
        "is shown as torch.b",
    ),
    ("--set --dtype=bf16", {"dtype": "float32"}, {"dtype": "float32"}, FAIL, "--dtype=bf16 was asked for"),
    (
        "--set --dtype=bf16",
        {},
        {"dtype": "torch.bfloat16"},
        SKIPPED,
        "--dtype=bf16 is shown as torch.bfloat16",
    ),
    ("--set --compile", {"compile": "False"}, {"compile": "True"}, PASS, "compile: True"),
    ("--set --compile", {"compile": "False"}, {"compile": "False"}, FAIL, "--compile was asked for"),
    ("--unset --amp", {"amp": "True"}, {"amp": "False"}, PASS, "amp: False"),
    ("--unset --amp", {"amp": "True"}, {"amp": "True"}, FAIL, "the program shows amp: True"),
    ("--unset --amp", {}, {"amp": "False"}, SKIPPED, "None"),
    ("--unset --amp", {}, {}, SKIPPED, "--amp is not on the command line, but the program printed no"),
    (
        "--env OMP_NUM_THREADS=4",
        {"OMP_NUM_THREADS": "1"},
        {"OMP_NUM_THREADS": "4"},
        PASS,
        "OMP_NUM_THREADS: 4",
    ),
    (
        "--env OMP_NUM_THREADS=4",
        {},
        {},
        SKIPPED,
        "OMP_NUM_THREADS is set, but the program does not print its var",
    ),
    ("--patch hypotheses/patches/a.patch", {}, {}, SKIPPED, "unknown: no process reported it"),
    ("--code", {}, {}, SKIPPED, "unknown: no process reported it"),
    ("--compound --set --batch_size=16 --set --lr=1", {}, {"lr": "1"}, SKIPPED, "--batch_size is on"),
    ("--compound --set --batch_size=16 --set --lr=1", {}, {"lr": "1", **BATCH8}, FAIL, "batch_size: 8"),
    (
        "--compound --set --batch_size=16 --set --lr=1",
        {},
        {"lr": "1", **BATCH16},
        PASS,
        "batch_size: 16; lr: 1",
    ),
]


@pytest.mark.parametrize(("change", "before", "after", "result", "said"), TABLE)
def test_what_the_program_shows_decides(
    change: str, before: dict[str, str], after: dict[str, str], result: Result, said: str
) -> None:
    effect = found(change, before, after)
    assert effect.result is result
    assert said in f"{effect.value} {effect.note}"


@pytest.mark.parametrize(
    ("change", "argv", "said"),
    [
        ("--set --lr=1", OLD, "the command has --lr=0.1"),
        ("--set --lr=1", ("python", "train.py"), "the command has no --lr"),
        ("--set --lr=1", (*OLD, "--lr=1"), None),
        ("--unset --amp", OLD, "the command still has --amp"),
        ("--set --out=x/{run}", (*OLD, "--out=x/0001"), None),
        ("--set --name=abcdef", (*OLD, "--name=[redacted]"), None),
    ],
)
def test_the_command_itself_must_hold_the_change(
    change: str, argv: tuple[str, ...], said: str | None
) -> None:
    effect = effect_of(
        intervention.parse(change), [ShownConfiguration(OLD, {})], [ShownConfiguration(argv, {})]
    )
    assert (effect.result, effect.value) == ((FAIL, said) if said else (SKIPPED, None))


def test_one_run_without_the_change_is_enough() -> None:
    change = intervention.parse("--set --batch_size=16")
    argv = change.apply(OLD, {}).argv
    runs = [ShownConfiguration(argv, BATCH16), ShownConfiguration(argv, BATCH8)]
    assert effect_of(change, [ShownConfiguration(OLD, BATCH8)], runs).result is FAIL


def fed(*loaders: dict[str, object]) -> dict[str, object]:
    return {"loaders": [{"fetched": 9, "training": True, **loader} for loader in loaders]}


NO_WORKERS, FOUR = fed({"workers": 0}), fed({"workers": 4})


@pytest.mark.parametrize(
    ("change", "before", "after", "result", "said"),
    [
        ("--set --num_workers=4", NO_WORKERS, FOUR, PASS, "workers: 4 (the training's loader)"),
        ("--set --data.num-workers=4", NO_WORKERS, FOUR, PASS, "workers: 4"),
        (
            "--set --num_workers=4",
            NO_WORKERS,
            NO_WORKERS,
            FAIL,
            "--num_workers=4 was asked for, the program has workers: 0",
        ),
        ("--set --num_workers=9", NO_WORKERS, FOUR, PASS, "9 was asked for"),
        ("--set --num_workers=4", {}, NO_WORKERS, SKIPPED, "--num_workers is on the command line"),
        ("--set --num_workers=4", NO_WORKERS, {}, SKIPPED, "--num_workers is on the command line"),
        ("--set --workers=4", NO_WORKERS, NO_WORKERS, SKIPPED, "--workers is on the command line"),
        ("--set --num_workers=4", NO_WORKERS, fed({"workers": 0}, {"workers": 4}), PASS, "workers: 0, 4"),
        (
            "--set --num_workers=4",
            NO_WORKERS,
            fed({"workers": 0}, {"workers": 2}),
            SKIPPED,
            "is on the command line",
        ),
        (
            "--set --num_workers=4",
            NO_WORKERS,
            fed({"workers": 4, "training": False}),
            SKIPPED,
            "is on the command line",
        ),
        (
            "--set --dataloader_pin_memory",
            fed({"pin_memory": False}),
            fed({"pin_memory": True}),
            PASS,
            "pin_memory: True",
        ),
        (
            "--set --prefetch_factor=8",
            fed({"prefetch_factor": 2}),
            fed({"prefetch_factor": 2}),
            FAIL,
            "prefetch_factor: 2",
        ),
        ("--set --batch_size=16", fed({"batch_size": 8}), fed({"batch_size": 16}), PASS, "batch_size: 16"),
        (
            "--set --batch_size=16",
            fed({"batch_size": 8}),
            fed({"batch_size": 8}),
            SKIPPED,
            "is on the command line",
        ),
        ("--env NUM_WORKERS=4", NO_WORKERS, NO_WORKERS, FAIL, "NUM_WORKERS=4 was asked for"),
        ("--unset --batch_size", fed({"batch_size": 8}), fed({"batch_size": 1}), PASS, "batch_size: 1"),
        (
            "--unset --batch_size",
            fed({"batch_size": 8}),
            fed({"batch_size": 8}),
            SKIPPED,
            "is not on the command line",
        ),
        ("--set --lr=1", NO_WORKERS, NO_WORKERS, SKIPPED, "--lr is on"),
    ],
)
def test_what_the_loader_shows_decides_where_nothing_is_printed(
    change: str, before: dict[str, object], after: dict[str, object], result: Result, said: str
) -> None:
    parsed = intervention.parse(change)
    old, new = (
        ShownConfiguration(OLD, {}, facts=before),
        ShownConfiguration(parsed.apply(OLD, {}, None).argv, {}, facts=after),
    )
    effect = effect_of(parsed, [old], [new])
    assert effect.result is result
    assert said in f"{effect.value} {effect.note}"
    printed = {part.name: str(part.value) for part in parsed.changes if part.value}
    if printed and parsed.changes[0].kind == "set":
        assert effect_of(parsed, [old], [replace(new, printed=printed)]).result is PASS


TREE = "/repo/runs/worktrees/c/h1-trial"
FILES = ("pkg/__init__.py", "pkg/util.py", "train.py")
PATCH = intervention.parse("--patch hypotheses/patches/a.patch")


@pytest.mark.parametrize(
    ("loaded", "probed", "touched", "effect"),
    [
        (FILES, True, ("pkg/util.py", "conf.yaml"), ChangeEffect(PASS, f"pkg/util.py loaded from {TREE}")),
        (FILES, True, FILES, ChangeEffect(PASS, f"{', '.join(FILES)} loaded from {TREE}")),
        (FILES, True, ("conf.yaml",), ChangeEffect(SKIPPED, note="no process imported conf.yaml")),
        (
            (),
            True,
            ("a.py", "b.py", "c.py", "d.py"),
            ChangeEffect(SKIPPED, note="no process imported a.py, b.py, c.py and 1 more"),
        ),
        (FILES, True, (), ChangeEffect(SKIPPED, note="no process imported a file that the change touches")),
        (
            None,
            True,
            ("train.py",),
            ChangeEffect(
                SKIPPED, note="the files that the program loaded are unknown: no process reported it"
            ),
        ),
        (
            None,
            False,
            ("train.py",),
            ChangeEffect(
                SKIPPED, note="the files that the program loaded are unknown: probe: false in gpudebug.yaml"
            ),
        ),
    ],
)
def test_a_patch_is_in_effect_where_a_file_of_it_was_imported(
    loaded: tuple[str, ...] | None, probed: bool, touched: tuple[str, ...], effect: ChangeEffect
) -> None:
    told = LoadedFiles(tree=TREE, files=loaded) if loaded is not None else None
    after = ShownConfiguration(OLD, {}, told, probed)
    assert effect_of(PATCH, [ShownConfiguration(OLD, {})], [after], touched) == effect


def test_every_run_of_a_patch_has_to_tell() -> None:
    told = ShownConfiguration(OLD, {}, LoadedFiles(tree=TREE, files=FILES))
    assert effect_of(PATCH, [], [told, told], ["train.py"]).result is PASS
    assert effect_of(PATCH, [], [told, ShownConfiguration(OLD, {})], ["train.py"]).result is SKIPPED


def test_a_patch_and_a_flag_are_judged_each_by_its_own() -> None:
    change = intervention.parse("--compound --set --batch_size=16 --patch hypotheses/patches/a.patch")
    argv = change.apply(OLD, {}).argv
    told = LoadedFiles(tree=TREE, files=FILES)
    runs = [ShownConfiguration(argv, printed, told) for printed in (BATCH16, BATCH8, {})]
    results = [
        effect_of(change, [ShownConfiguration(OLD, BATCH8)], [run], ["train.py"]).result for run in runs
    ]
    assert results == [PASS, FAIL, SKIPPED]


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (BATCH8, BATCH16, ("--batch-size (shown as 8, then 16)",)),
        (BATCH8, {"batch_size": "8.0"}, ()),
        (BATCH8, {}, ()),
        ({}, BATCH16, ()),
    ],
)
def test_a_locked_knob_that_moves_by_itself_is_named(
    before: dict[str, str], after: dict[str, str], moved: tuple[str, ...]
) -> None:
    assert (
        moved_knobs(
            ["--batch-size", "--seed"], [ShownConfiguration(OLD, before)], [ShownConfiguration(OLD, after)]
        )
        == moved
    )


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("8", "8.0", True),
        ("1e-4", "0.0001", True),
        ("True", "true", True),
        ("1", "True", True),
        ("off", "False", True),
        ("0", "True", False),
        ("[1, 2]", "1 2", True),
        ("(1, 2)", "1,2", True),
        ("[1, 2]", "[1, 3]", False),
        ("1", "1 1", False),
        ("'adam'", "adam", True),
        ("./out/", "out", True),
        ("nan", "nan", True),
        ("inf", "1", False),
        ("", "None", False),
        ("\u0661", "1", False),
        ("bf16", "fp16", False),
    ],
)
def test_values_are_compared_as_what_they_are(a: str, b: str, same: bool) -> None:
    assert same_value(a, b) is same
    assert same_value(b, a) is same


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_however_it_is_written(value: float) -> None:
    assert same_value(repr(value), f"{value:.17g}")
    assert not same_value(repr(value), repr(value * 2 + 1)) or value == -1
