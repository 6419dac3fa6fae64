"""Whether a change reached the program, by what it shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudebug.core.change import intervention
from gpudebug.core.records import LoadedFiles
from gpudebug.core.trainlog.printed_settings import printed_settings
from gpudebug.core.verdict.took_effect import (
    ChangeEffect,
    ShownConfiguration,
    effect_of,
    moved_knobs,
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
        # A loader that has the old value contradicts what is printed.
        usual = SKIPPED if result is FAIL else PASS
        assert effect_of(parsed, [old], [replace(new, printed=printed)]).result is usual


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


NANOGPT_FILE = """\
Overriding config with config/train_char.py:
# train a miniature model

out_dir = 'out-char'
eval_interval = 20 # keep frequent because we'll overfit
eval_iters = 20
log_interval = 10

"""
STEPS = "tokens per iteration will be: 16,384\nstep 0: train loss 4.2, val loss 4.2\n"
YAML_FILE = "workers: 2\nlr: 0.1\nepochs: 3\n"
# The change of `eval_interval` or `workers`, the command, what the trial prints, result, what is said. The
# baseline prints the same with its own value.
PRINTS: list[tuple[str, str, Result, str]] = [
    # nanoGPT: the file, then the command line
    (
        "eval_interval=500",
        f"{NANOGPT_FILE}Overriding: eval_interval = 500\n{STEPS}",
        PASS,
        "eval_interval: 500",
    ),
    ("eval_interval=500", NANOGPT_FILE + STEPS, FAIL, "the program shows eval_interval: 20"),
    (
        "eval_interval=500",
        f"Overriding: eval_interval = 500\n{NANOGPT_FILE}{STEPS}",
        FAIL,
        "the program shows eval_interval: 20",
    ),
    # argparse after the echo of a file, and the other way round
    ("workers=4", f"{YAML_FILE}Namespace(workers=4, lr=0.1, epochs=3)\n", PASS, "workers: 2, then 4"),
    ("workers=4", f"Namespace(workers=4, lr=0.1)\n{YAML_FILE}", SKIPPED, "shows workers: 4, then 2"),
    ("workers=4", f"{YAML_FILE}Namespace(workers=2, lr=0.1)\n", FAIL, "the program shows workers: 2"),
    # the same arguments again, once they are resolved
    (
        "workers=4",
        "Namespace(workers=4, lr=0.1, epochs=3)\nno cores\nNamespace(workers=0, lr=0.1, epochs=3)\n",
        FAIL,
        "the program shows workers: 0",
    ),
    # two ranks beside each other: neither is the later
    (
        "workers=4",
        "Namespace(rank=0, workers=4, lr=0.1)\nNamespace(rank=1, workers=2, lr=0.1)\n",
        SKIPPED,
        "contradicts itself",
    ),
    # a word that something is overridden, in the forms that programs have
    ("workers=4", f"{YAML_FILE}Overriding workers: 2 -> 4\n", PASS, "workers: 4"),
    ("workers=4", f"{YAML_FILE}INFO Override workers from 2 to 4\n", PASS, "workers: 4"),
    ("workers=4", f"{YAML_FILE}overrides: ['data.lr=3', '++workers=4']\n", PASS, "workers: 4"),
    ("workers=4", f"{YAML_FILE}overrides:\n  task:\n  - workers=4\n", PASS, "workers: 4"),
    ("workers=4", "Namespace(workers=4, lr=0.1)\nOverriding: workers = 2\n", FAIL, "shows workers: 2"),
    # one word that confirms against one that does not: unknown, and no proof
    ("workers=4", "workers: 4\nBuilding\nworkers: 2\n", SKIPPED, "shows workers: 4, then 2"),
    ("workers=4", "workers: 2\nBuilding\nworkers: 4\n", PASS, "workers: 2, then 4"),
    ("workers=4", "workers: 2\nBuilding\nworkers: 3\n", SKIPPED, "contradicts itself"),
    # Ultralytics prints one row
    (
        "workers=4",
        "\x1b[34m\x1b[1mengine/trainer: \x1b[0mtask=detect, mode=train, model=yolo11n.yaml, data=coco8.yaml, "
        "epochs=1, batch=16, save=True, workers=4, project=None, classes=[0, 1], save_dir=runs/train\n",
        PASS,
        "workers: 4",
    ),
    # rl_zoo3 prints pairs
    ("workers=4", "OrderedDict([('workers', 4),\n             ('n_envs', 8)])\n", PASS, "workers: 4"),
    # Lightning and Hydra templates print trees
    ("data.workers=4", "CONFIG\n├── data\n│   └── batch_size: 8\n│       workers: 4\n", PASS, "workers: 4"),
]


@pytest.mark.parametrize(("change", "log", "result", "said"), PRINTS)
def test_the_last_word_of_a_program_counts(change: str, log: str, result: Result, said: str) -> None:
    name = change.partition("=")[0]
    usual = "20" if name == "eval_interval" else "2"
    old = ("python", "train.py", "--seed=1", f"--{name}={usual}")
    parsed = intervention.parse(f"--set --{change}")
    settings = printed_settings(log)
    before = ShownConfiguration(old, {name: usual})
    after = ShownConfiguration(parsed.apply(old, {}).argv, settings.known, restated=settings.restated)
    effect = effect_of(parsed, [before], [after])
    assert effect.result is result, effect
    assert said in f"{effect.value} {effect.note}"


@pytest.mark.parametrize(
    ("printed", "result"),
    [({"workers": "4"}, PASS), ({"workers": "0"}, FAIL), ({"j": "4"}, SKIPPED)],
)
def test_a_short_flag_is_confirmed_by_its_long_name(printed: dict[str, str], result: Result) -> None:
    old, names = ("python", "train.py", "-j", "0"), (("--workers", "-j"),)
    parsed = intervention.parse("--set -j=4")
    after = ShownConfiguration(parsed.apply(old, {}).argv, printed, synonyms=names)
    assert (
        effect_of(parsed, [ShownConfiguration(old, {"workers": "0"}, synonyms=names)], [after]).result
        is result
    )


def prints(change: str, argv: tuple[str, ...], before: str, after: str) -> ChangeEffect:
    """What two logs show of a change to `python train.py`."""
    parsed, old = intervention.parse(change), ("python", "train.py", *argv)
    new = old if "--env" in change else parsed.apply(old, {}).argv
    (shown, was) = (printed_settings(text) for text in (after, before))
    return effect_of(
        parsed,
        [ShownConfiguration(old, was.known, restated=was.restated)],
        [ShownConfiguration(new, shown.known, restated=shown.restated)],
    )


ECHO = "workers: 2\nlr: 0.1\n"
# The change, the baseline's flags, what the baseline prints, what the trial prints, result
ECHOES: dict[str, tuple[str, tuple[str, ...], str, str, Result]] = {
    "a batch as each device gets it": (
        "--set --batch_size=16",
        ("--batch_size=8",),
        "Namespace(batch_size=4, lr=0.1)\n",
        "Namespace(batch_size=8, lr=0.1)\n",
        PASS,
    ),
    "a batch that stays": (
        "--set --batch_size=16",
        ("--batch_size=8",),
        "Namespace(batch_size=4, lr=0.1)\n",
        "Namespace(batch_size=4, lr=0.1)\n",
        SKIPPED,
    ),
    "a file that the command overrides without a word": (
        "--set --workers=4",
        ("--workers=1",),
        ECHO,
        ECHO,
        SKIPPED,
    ),
    "a file that other flags override without a word": (
        "--set --workers=4",
        ("--lr=0.5",),
        ECHO,
        ECHO,
        SKIPPED,
    ),
    "arguments that follow the command": ("--set --workers=4", ("--lr=0.1",), ECHO, ECHO, FAIL),
    "another setting of that name": (
        "--set --batch_size=64",
        (),
        "val:\n  batch_size: 1\n",
        "val:\n  batch_size: 1\n",
        SKIPPED,
    ),
    "another setting that has the value already": (
        "--set --batch_size=1",
        ("--batch_size=8",),
        "val:\n  batch_size: 1\n",
        "val:\n  batch_size: 1\n",
        SKIPPED,
    ),
    "a longer name that follows the command": (
        "--set --batch_size=64",
        ("--batch_size=8",),
        "train:\n  batch_size: 8\n",
        "train:\n  batch_size: 8\n",
        FAIL,
    ),
    "a variable and a flag of its name": (
        "--env DEBUG=1",
        (),
        "Namespace(debug=False, lr=0.1)\n",
        "Namespace(debug=False, lr=0.1)\n",
        SKIPPED,
    ),
    "a word that may mean the same": (
        "--set --workers=auto",
        ("--workers=4",),
        "Namespace(workers=4)\n",
        "Namespace(workers=4)\n",
        SKIPPED,
    ),
    "an enumeration": (
        "--set --eval_strategy=no",
        ("--eval_strategy=steps",),
        "eval_strategy: IntervalStrategy.STEPS\n",
        "eval_strategy: IntervalStrategy.STEPS\n",
        FAIL,
    ),
    "the opposite of a flag": (
        "--set --no-amp",
        (),
        "Namespace(amp=True, lr=0.1)\n",
        "Namespace(amp=False, lr=0.1)\n",
        PASS,
    ),
    "the opposite of a flag without effect": (
        "--set --no-amp",
        (),
        "Namespace(amp=True, lr=0.1)\n",
        "Namespace(amp=True, lr=0.1)\n",
        FAIL,
    ),
    "several values that the baseline has too": (
        "--set --workers=4",
        ("--workers=2",),
        "workers: 2\nBuilding\nworkers: 4\n",
        "workers: 2\nBuilding\nworkers: 4\n",
        SKIPPED,
    ),
    "an argument of a class": (
        "--set --data.batch_size=64",
        ("--data.batch_size=8",),
        "data:\n  class_path: D\n  init_args:\n    batch_size: 8\n",
        "data:\n  class_path: D\n  init_args:\n    batch_size: 64\n",
        PASS,
    ),
    "a flag of a configuration object": (
        "--set --config.batch_size=64",
        ("--config.batch_size=8",),
        "batch_size: 8\nmodel:\n  dim: 3\n",
        "batch_size: 8\nmodel:\n  dim: 3\n",
        FAIL,
    ),
    "what the program ignores": (
        "--set --workers=4",
        (),
        "",
        "Unused arguments: {'workers': 4}\n",
        SKIPPED,
    ),
}


@pytest.mark.parametrize(("change", "argv", "before", "after", "result"), ECHOES.values(), ids=ECHOES)
def test_only_what_follows_the_command_contradicts_it(
    change: str, argv: tuple[str, ...], before: str, after: str, result: Result
) -> None:
    effect = prints(change, argv, before, after)
    assert effect.result is result, effect


def test_the_loader_outranks_an_echo() -> None:
    change = intervention.parse("--set --num_workers=4")
    old = ShownConfiguration(OLD, {"num_workers": "2"}, facts=fed({"workers": 0}))
    new = ShownConfiguration(change.apply(OLD, {}).argv, {"num_workers": "2"}, facts=fed({"workers": 4}))
    effect = effect_of(change, [old], [new])
    assert (effect.result, effect.note) == (PASS, "the program prints num_workers: 2")
