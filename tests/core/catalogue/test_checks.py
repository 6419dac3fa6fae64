"""What a root cause cannot say: each refused at its line, with the nearest that it can."""

from __future__ import annotations

import pytest
from tests.support.causes import TEXT, cause, having

from gpudebug.core.catalogue.checks import problems
from gpudebug.core.errors import CatalogueError

SIGN = "{signal: data_wait_share, above: 0.2, weight: 8}"
KNOB = "{names: [(num_)?workers], direction: up, value: 4}"


def sign(text: str) -> str:
    return having(SIGN, text)


def knob(text: str) -> str:
    return having(KNOB, text)


@pytest.mark.parametrize(
    ("text", "line", "said", "next"),
    [
        (
            sign("{signal: data_wait, above: 0.2, weight: 8}"),
            10,
            "is evidence that no run has",
            "data_wait_share",
        ),
        (sign("{signal: qqqqq, above: 0.2, weight: 8}"), 10, "is evidence that no run has", "--signals"),
        (sign("{signal: data_wait_share, weight: 8}"), 10, "compares with nothing", "above"),
        (sign("{above: 0.2, weight: 8}"), 10, "reads nothing", "signal"),
        (
            sign("{signal: gpu_util, section: x, above: 1, weight: 8}"),
            10,
            "signal and section",
            "signal alone",
        ),
        (sign("{signal: gpu_util, above: 1, equals: 2, weight: 8}"), 10, "above and equals", "keep one"),
        (sign("{signal: gpu_util, above: 9, below: 2, weight: 8}"), 10, "never holds", "swap"),
        (sign("{signal: data_wait_share, above: 20, weight: 8}"), 10, "a share from 0 to 1", "write 0.2"),
        (sign("{stack: x, above: 20, weight: 8}"), 10, "a share from 0 to 1", "write 0.2"),
        (sign("{signal: loader_used, above: 1, weight: 8}"), 10, "is true or false", "equals: true"),
        (sign("{signal: framework, equals: true, weight: 8}"), 10, "is a word", "matches"),
        (sign("{signal: gpu_util, equals: high, weight: 8}"), 10, "is a number", "above"),
        (sign("{signal: gpu_util, matches: x, weight: 8}"), 10, "is a number", "above"),
        (
            sign("{signal: gpu_util, above: 1, phase: data, weight: 8}"),
            10,
            "with stack or code alone",
            "drop",
        ),
        (sign("{stack: '(', above: 0.2, weight: 8}"), 10, "is no expression", "mend"),
        (sign("{flag: '', equals: 1, weight: 8}"), 10, "matches everything", None),
        (sign("{signal: data_wait_share, above: 0.2, weight: 0}"), 10, "a number above 0", None),
        (sign("{signal: data_wait_share, above: 0.2, weight: -1}"), 10, "a number above 0", None),
        (sign("{signal: data_wait_share, above: 0.2, weight: inf}"), 10, "a number above 0", None),
        (having("otherwise: 0.5", "otherwise: 0"), 11, "a number above 0", None),
        (having("- {signal: data_wait_share}", "- {signal: framework}"), 13, "not a share of the time", None),
        (having("- {signal: data_wait_share}", "- {signal: gpu_util}"), 13, "in percent", "times: 0.01"),
        (having("- {signal: data_wait_share}", "- {stack: a, times: 0}"), 13, "a number above 0", None),
        (having("- {signal: data_wait_share}", "- {stack: a, within: data_wait}"), 13, "no run has", None),
        (having("  lerobot:", "  lerobo:"), 15, "not a framework that gpudebug knows", "write lerobot"),
        (having("{set: {num_workers: 4}}", "{note: x}"), 15, "changes nothing", "set"),
        (having("{set: {num_workers: 4}}", "{set: {'a b': 4}}"), 15, "names no flag", None),
        (having("{set: {num_workers: 4}}", "{env: {PATH: x}}"), 15, "which program runs", None),
        (
            having("{set: {num_workers: 4}}", "{set: {a: 1}, versions: new}"),
            15,
            "a range of versions",
            ">=0.4",
        ),
        (having("  any: {code", "  env: {set: {a: 1}, code"), 16, "env sets flags", None),
        (knob("{names: ['('], direction: up}"), 18, "is no expression", None),
        (knob("{names: [], direction: up}"), 18, "names no option", None),
        (knob("{names: [a], direction: to}"), 18, "goes to no value", "value"),
        (knob("{names: [a], direction: up, factor: 0.5}"), 18, "up by a factor of 0.5", "factor: 2"),
        (knob("{names: [a], direction: down, factor: 0}"), 18, "a number above 0", None),
        (having("[slow thing]", "['[']"), 19, "is no expression", None),
        (having("[slow thing]", "['a{99999999999999}']"), 19, "is no expression", "mend"),
        (having("{signal: data_wait_share, direction", "{signal: wait, direction"), 22, "no run has", None),
        (having("{vision: 2,", "{visoin: 2,"), 6, "not a kind of workload", "write vision"),
        (having("{vision: 2,", "{vision: -2,"), 6, "odds of 0 or above", None),
        (having("title: A thing is slow", "title: ' '"), 2, "title is empty", None),
        (having("title: A thing is slow", "title: |\n  a\n  b"), 3, "expected one line", None),
        ("id: slow-thing\ntitle: a\nexplanation: b\nfix: c\n", 1, "no sign", "signature"),
    ],
)
def test_what_cannot_be_is_refused(text: str, line: int, said: str, next: str | None) -> None:
    with pytest.raises(CatalogueError) as e:
        cause(text)
    assert (said in e.value.message, e.value.message) == (True, e.value.message)
    assert e.value.line == line
    assert e.value.next is not None and (next or "") in e.value.next


@pytest.mark.parametrize(
    ("intervention", "said"),
    [
        ("{set: {prefetch_factor: 8}, versions: '>=0.4'}", "LeRobot has no prefetch_factor before 0.6"),
        ("{set: {prefetch_factor: 8}, versions: '<0.5'}", "LeRobot has no prefetch_factor before 0.6"),
        ("{set: {prefetch_factor: 8}, versions: '>=0.6'}", None),
        ("{set: {prefetch_factor: 8}}", None),
        ("{set: {env_eval_freq: 8}, versions: '>=0.3'}", None),
    ],
)
def test_a_flag_that_a_version_lacks_is_refused(intervention: str, said: str | None) -> None:
    text = having("{set: {num_workers: 4}}", intervention)
    if said is None:
        assert cause(text).interventions["lerobot"]
        return
    with pytest.raises(CatalogueError, match=said) as e:
        cause(text)
    assert e.value.next == "write versions: '>=0.6'"


def test_a_flag_that_went_is_refused() -> None:
    hf = "hf_trainer: {set: {group_by_length: true}, versions: '>=4'}"
    with pytest.raises(CatalogueError, match=r"has no group_by_length from 5\.2 on"):
        cause(having("lerobot: {set: {num_workers: 4}}", hf))


def test_frameworks_are_checked_where_they_are_known() -> None:
    found = cause()
    strange = found.model_copy(update={"interventions": {"unheard_of": found.interventions["lerobot"]}})
    assert list(problems(strange)) == []


def test_a_good_file_has_no_problem() -> None:
    assert list(problems(cause(TEXT))) == []
