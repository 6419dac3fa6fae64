"""A change as it is written, and what it makes of a command line."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpudebug.core.change import intervention
from gpudebug.core.change.intervention import SingleChange
from gpudebug.core.change.permits import Allowed
from gpudebug.core.command import command_line, launchers
from gpudebug.core.errors import InterventionError


def applied(command: str, change: str) -> str:
    return shlex.join(intervention.parse(change).apply(shlex.split(command), {}).argv)


@pytest.mark.parametrize(
    ("command", "change", "expected"),
    [
        # in place, in the style that stands there
        ("t --a=1 --b=2", "--set --a=3", "t --a=3 --b=2"),
        ("t --a 1 --b 2", "--set --a=3", "t --a 3 --b 2"),
        ("t --a 1 --b 2", "--set a=3", "t --a 3 --b 2"),
        ("t a.b=1 c=2", "--set a.b=3", "t a.b=3 c=2"),
        ("t +a.b=1 ++c=2", "--set a.b=3 --set c=4", "t +a.b=3 ++c=4"),
        ("t a.b=1", "--set --a.b=3", "t a.b=3"),
        ("t --lr -0.5", "--set --lr=-1e-3", "t --lr -1e-3"),
        ("t --x a", "--set --x=--y", "t --x=--y"),
        ("t --batch-size=8", "--set --batch_size=16", "t --batch-size=16"),
        ("t -b 8 --c", "--set -b=16", "t -b 16 --c"),
        ("t --ids 0 1 2 --c", "--set --ids=5", "t --ids 5 --c"),
        ("t --lr 1 data/", "--set --lr=2", "t --lr 2 data/"),
        ("t --a=1 x --a=2", "--set --a=3", "t --a=3 x"),
        ("t --a 1 --a 2 --b", "--set --a=1", "t --a 1 --b"),
        ("t --flag --b=1", "--set --flag=false", "t --flag=false --b=1"),
        ("t --flag=false", "--set --flag", "t --flag"),
        ("t --flag false x", "--set --flag", "t --flag x"),
        ("t --a=", "--set --a=1", "t --a=1"),
        ("t --a=1", "--set --a=", "t --a="),
        # appended
        ("t --a=1", "--set --b=2", "t --a=1 --b=2"),
        ("t --a 1", "--set --b=2", "t --a 1 --b 2"),
        ("t --a 1", "--set --b=-x", "t --a 1 --b=-x"),
        ("t --a=1", "--set -b=2", "t --a=1 -b 2"),
        ("t a=1 c.d=2", "--set e.f=3", "t a=1 c.d=2 e.f=3"),
        ("t a=1 c.d=2", "--set +e.f=3", "t a=1 c.d=2 +e.f=3"),
        ("t --a=1", "--set e=3", "t --a=1 --e=3"),
        ("t", "--set --x", "t --x"),
        ("t --a=1 -- pos", "--set --b=2", "t --a=1 --b=2 -- pos"),
        ("uv run -- t --a=1", "--set --b=2", "uv run -- t --a=1 --b=2"),
        (
            "torchrun --nproc_per_node 2 t.py --a=1",
            "--set --b=2",
            "torchrun --nproc_per_node 2 t.py --a=1 --b=2",
        ),
        ("accelerate launch --p 1 t.py --p 2", "--set --p=3", "accelerate launch --p 1 t.py --p 3"),
        # values
        ("t", """--set '--j={"a": [1], "b": "x=y"}'""", """t '--j={"a": [1], "b": "x=y"}'"""),
        ("t --j '{}'", """--set --j='{"a": 1}'""", """t --j '{"a": 1}'"""),
        # unset
        ("t --a=1 --b", "--unset --a", "t --b"),
        ("t --a 1 --b", "--unset a", "t --b"),
        ("t --a --b", "--unset --a", "t --b"),
        ("t --a=1 x --a=2", "--unset --a", "t x"),
        ("t a.b=1 c=2", "--unset a.b", "t c=2"),
        ("t --a=1 --b=2", "--unset --a --set --c=3", "t --b=2 --c=3"),
    ],
)
def test_what_a_change_makes_of_a_command(command: str, change: str, expected: str) -> None:
    assert applied(command, change) == expected


@pytest.mark.parametrize(
    ("command", "change", "says"),
    [
        ("t --a=1", "--set --a=1", "has --a=1 already"),
        ("t --a 1", "--set a=1", "already"),
        ("t --a=2 --a=1", "--set --a=1", "already"),
        ("t --flag x", "--set --flag", "already"),
        ("t --a=1", "--unset --b", "no effect"),
        ("sh -c 't --a=1'", "--set --a=2", "shell"),
        ("sh -c 't --a=1'", "--unset --a", "shell"),
    ],
)
def test_a_change_without_effect_is_refused(command: str, change: str, says: str) -> None:
    with pytest.raises(InterventionError, match=says) as caught:
        applied(command, change)
    assert caught.value.next


def test_variables() -> None:
    change = intervention.parse("--env OMP_NUM_THREADS=4 --env EMPTY= --env 'X=a b=c'")
    opened = Allowed(env=frozenset({"EMPTY", "X"}))
    result = change.apply(["sh", "-c", "t"], {"OMP_NUM_THREADS": "1", "HOME": "/h"}, opened)
    assert result.argv == ("sh", "-c", "t")
    assert result.env == {"OMP_NUM_THREADS": "4", "HOME": "/h", "EMPTY": "", "X": "a b=c"}
    with pytest.raises(InterventionError, match="already"):
        intervention.parse("--env NCCL_ALGO=Ring").apply(["t"], {"NCCL_ALGO": "Ring"})


@pytest.mark.parametrize(
    ("command", "change", "notes"),
    [
        ("t --a=1 --a=2", "--set --a=3", ("--a stood 2 times; one is left",)),
        ("t --a-b=1", "--set --a_b=3", ("the command spells --a_b as --a-b",)),
        ("t --a 1 2", "--set --a=3", ("--a had the values 1 2",)),
        ("t --a=1", "--set --a=3", ()),
        ("t --a x", "--unset --a", ("--a is removed with x",)),
        ("t --a=1 --b", "--unset --a", ()),
    ],
)
def test_what_a_reader_should_know_is_noted(command: str, change: str, notes: tuple[str, ...]) -> None:
    assert intervention.parse(change).apply(command.split(), {}).notes == notes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "--set",
        "--set --a=1 extra",
        "--set num_workers",
        "--set '--lr 3'",
        "--set =1",
        "--set ''",
        "--unset --a=1",
        "--env A",
        "--env 1A=2",
        "--env =2",
        "--patch /etc/passwd",
        "--patch hypotheses/patches/../../x",
        "--patch hypotheses/patches",
        "--patch other/x.patch",
        "--code=x",
        "--code --code",
        "--set --a=1 --set a=2",
        "--set --a=1 --unset --a",
        "--patch hypotheses/patches/a --patch hypotheses/patches/b",
        "--set '--a=1",
        "--set $'--a=x\ny'",
        "--set '--a=x\ny'",
        "--env 'A=\x1b[31m'",
        "--env 'OMP_NUM_THREADS=\u202e1'",
        "--set '--a=1\u2066 \u2069'",
        "--set '--a=\u200b1'",
        "--frobnicate --a=1",
    ],
)
def test_what_is_no_change_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InterventionError) as caught:
        intervention.parse(text, file="progress.md", line=7)
    assert (caught.value.file, caught.value.line) == ("progress.md", 7)
    assert caught.value.next


def test_kinds_names_and_sizes() -> None:
    change = intervention.parse("--set --a=1 --unset b --env C=2 --patch hypotheses/patches/h1.patch --code")
    assert change.names == ("--a", "b", "C")
    assert change.size == 5
    assert change.patch == "hypotheses/patches/h1.patch"
    assert not change.mechanical
    assert not intervention.parse("--code").mechanical
    assert intervention.parse("--code").needs_code
    assert intervention.parse("--set --a --env B=1").mechanical
    assert intervention.parse("--patch hypotheses/patches/h1.patch --compound --set a=1").mechanical
    assert intervention.parse("--set=--a=1 --env=B=2").changes == (
        SingleChange("set", "--a", "1"),
        SingleChange("env", "B", "2"),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("--code", "--patch {}"),
        ("--compound --set --a=1 --code --env B=2", "--compound --set --a=1 --patch {} --env B=2"),
        ("--patch hypotheses/patches/old", "--patch {}"),
        ("--compound --patch hypotheses/patches/old --set --a=1 --code", "--compound --patch {} --set --a=1"),
        ("--set --a=1", "--set --a=1 --patch {}"),
    ],
)
def test_a_patch_takes_the_place_of_the_code(before: str, after: str) -> None:
    path = "hypotheses/patches/h12-loader-waits.patch"
    made = intervention.parse(before).with_patch(path)
    assert made.text == after.format(path)
    assert made == intervention.parse(made.text)
    assert (made.patch, made.needs_code, made.mechanical) == (path, False, True)


def test_a_patch_from_elsewhere_takes_no_place() -> None:
    with pytest.raises(InterventionError, match="outside hypotheses/patches/"):
        intervention.parse("--code").with_patch("../h1.patch")


def test_options_of_the_command_line_make_the_same_change() -> None:
    made = intervention.from_options(
        set=["--a=x y"], unset=["b"], env=["C=1"], patch="hypotheses/patches/p", code=True
    )
    assert made == intervention.parse(made.text)
    assert made.text == "--set '--a=x y' --unset b --env C=1 --patch hypotheses/patches/p --code"
    assert intervention.from_options(set=["--code"]).changes == (SingleChange("set", "--code"),)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("--set --a=2", "--set a=2", True),
        ("--set --a=2", "--set --a=3", False),
        ("--set --new=2", "--set new=2", True),
        ("--set --new-x=2", "--set --new_x=2", False),
        ("--set --b-c=2", "--set --b_c=2", True),
        ("--set --a=2 --env X=1", "--env X=1 --set a=2", True),
        ("--set --a=2", "--set --a=2 --env X=1", False),
        ("--set --n=1 --set --m=2", "--set --m=2 --set --n=1", True),
        ("--unset --a", "--unset a", True),
        ("--unset --a", "--set --a=2", False),
        ("--code", "--code", False),
        ("--patch hypotheses/patches/a", "--patch hypotheses/patches/a", True),
        ("--patch hypotheses/patches/a", "--patch hypotheses/patches/b", False),
        ("--set --a=1", "--set --a=1", True),
    ],
)
def test_two_changes_are_compared_by_their_effect(one: str, other: str, same: bool) -> None:
    argv = ["t", "--a", "1", "--b_c=4"]
    assert intervention.parse(one).same_effect(intervention.parse(other), argv) is same
    assert intervention.parse(other).same_effect(intervention.parse(one), argv) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("--patch {}/a", "--patch {}/b", True),
        ("--patch {}/a", "--patch {}/c", False),
        ("--patch {}/a", "--patch {}/unknown", False),
        ("--patch {}/unknown", "--patch {}/unknown", True),
        ("--patch {}/a --set a=2", "--set --a=2 --patch {}/b", True),
        ("--patch {}/a --set a=2", "--set --a=3 --patch {}/b", False),
        ("--patch {}/a --code", "--patch {}/b --code", False),
    ],
)
def test_two_patches_are_compared_by_what_they_change(one: str, other: str, same: bool) -> None:
    effects = {f"hypotheses/patches/{name}": value for name, value in (("a", 1), ("b", 1), ("c", 2))}
    changes = [intervention.parse(text.format("hypotheses/patches")) for text in (one, other)]
    assert changes[0].same_effect(changes[1], ["t", "--a", "1"], effects=effects) is same


@pytest.mark.parametrize(
    ("change", "held"),
    [
        ("--set --batch_size=16", ["--batch_size"]),
        ("--set batch_size=16", ["--batch_size"]),
        ("--set --batch-size=16", ["--batch_size"]),
        ("--unset --batch_size", ["--batch_size"]),
        ("--set policy.chunk_size=4", ["--policy.chunk_size"]),
        ("--set chunk_size=4", []),
        ("--set --batch_size_eval=4", []),
        ("--env SEED=4", ["SEED"]),
        ("--patch hypotheses/patches/batch_size", []),
    ],
)
def test_locked_knobs(change: str, held: list[str]) -> None:
    assert intervention.parse(change).locked_by(["--batch_size", "--policy.chunk_size", "SEED"]) == held


@pytest.mark.parametrize(
    ("change", "known", "held"),
    [
        ("--set --batch=16", None, []),
        ("--set --batch=16", [], ["--batch_size"]),
        ("--set --batch-s=16", [], ["--batch_size"]),
        ("--unset --batch", ["--lr"], ["--batch_size"]),
        ("--set --batch=16", ["--batch"], []),
        ("--set --batch=16", ["batch"], []),
        ("--set --batch=16", ["--batch_norm"], []),
        ("--set --batch=16", ["--batch_size"], ["--batch_size"]),
        ("--set batch=16", [], []),
        ("--set --batch_size_eval=4", [], []),
        ("--env batch=4", [], []),
        ("--compound --set --batch=16 --set --lr=1", [], ["--batch_size"]),
    ],
)
def test_a_locked_flag_by_its_beginning(change: str, known: list[str] | None, held: list[str]) -> None:
    assert intervention.parse(change).locked_by(["--batch_size", "--seed"], known) == held


NAMES = st.from_regex(r"(--?|\+)?[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), max_size=12)
COMMANDS = st.lists(
    st.one_of(
        NAMES, VALUES, st.builds("{}={}".format, NAMES, VALUES), st.sampled_from(["--", "-1", "t.py", "-m"])
    ),
    max_size=8,
).map(lambda words: ["t", *words])
# Words of the code under test are generated, too; what a launcher takes is another test's.
COMMANDS = COMMANDS.filter(lambda words: not launchers.launch(words).parts)


@given(st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=4), st.booleans())
def test_the_text_reads_back(pairs: list[tuple[str, str]], code: bool) -> None:
    assume(len({command_line.bare_name(name) for name, _ in pairs}) == len(pairs))
    made = intervention.from_options(set=[f"{name}={value}" for name, value in pairs], code=code)
    assert intervention.parse(made.text) == made
    assert "\n" not in made.text


@given(COMMANDS, NAMES, VALUES)
def test_a_flag_that_was_set_has_its_value(argv: list[str], name: str, value: str) -> None:
    try:
        result = intervention.from_options(set=[f"{name}={value}"]).apply(argv, {})
    except InterventionError as error:
        assert "already" in error.message
        return
    assert result.argv != tuple(argv)
    assert any(value in word for word in result.argv)
    changed = command_line.changed_names(argv, result.argv)
    assert changed
    with pytest.raises(InterventionError, match="already"):
        intervention.from_options(set=[f"{name}={value}"]).apply(result.argv, {})


@given(COMMANDS, NAMES)
def test_a_flag_that_was_unset_is_gone(argv: list[str], name: str) -> None:
    change = intervention.from_options(unset=[name])
    try:
        result = change.apply(argv, {})
    except InterventionError as error:
        assert "no effect" in error.message
        return
    assert len(result.argv) < len(argv)


@given(st.text(max_size=40))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        assert intervention.parse(text).size > 0
    except InterventionError as error:
        assert error.next


SPELLINGS = (("--workers", "-j"), ("--optimizer", "-o"))


@pytest.mark.parametrize(
    ("change", "argv", "locked"),
    [
        ("--set -j4", ("-j", "4"), ["--workers"]),
        ("--set -j=4", ("-j", "4"), ["--workers"]),
        ("--set --workers=4", ("-j", "4"), ["--workers"]),
        ("--set -oadam", ("-j", "0", "-oadam"), ["--optimizer"]),
        ("--set -v", ("-j", "0", "-v"), []),
    ],
)
def test_a_short_flag_with_its_value_is_the_knob_that_it_sets(
    change: str, argv: tuple[str, ...], locked: list[str]
) -> None:
    command = ("python", "train.py", "-j", "0")
    made = intervention.parse(change).spelled(command, SPELLINGS)
    assert made.apply(command, {}).argv[2:] == argv
    assert made.locked_by(("--workers", "--optimizer", "--lr"), synonyms=SPELLINGS) == locked
