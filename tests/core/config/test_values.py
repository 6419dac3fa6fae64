"""Each kind of value: what it accepts, and that a wrong one names what was expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.config import values
from gpudebug.core.config.values import DeviceChoice, Ratio


@pytest.mark.parametrize(
    ("reader", "given_value", "result"),
    [
        (values.text, "x\ny", "x\ny"),
        (values.text, 5, "5"),
        (values.boolean, True, True),
        (values.number, 5, 5.0),
        (values.positive, 0.5, 0.5),
        (values.count, 4, 4),
        (values.duration, "30m", 1800.0),
        (values.duration, 90, 90.0),
        (values.interval, "0.02s", 0.02),
        (values.warmup, "auto", None),
        (values.warmup, 0, 0.0),
        (values.warmup, "30s", 30.0),
        (values.run_for, "auto", None),
        (values.run_for, "end", "end"),
        (values.run_for, "90s", 90.0),
        (values.size, "2GB", 2 * 2**30),
        (values.slug, "act-relative_rtc.2", "act-relative_rtc.2"),
        (values.path, ".", "."),
        (values.path, "a/b c", "a/b c"),
        (values.file_path, "progress/x.md", "progress/x.md"),
        (values.metric, "gpu_util", "gpu_util"),
        (values.metric, "section:get_actions.policy", "section:get_actions.policy"),
        (values.threshold, 20, 20.0),
        (values.threshold, "20pp", 20.0),
        (values.command, "a b", "a b"),
        (values.command, ["a", "b c"], ("a", "b c")),
        (values.words, [], ()),
        (values.paths, [".venv", "data"], (".venv", "data")),
        (values.variables, {"A": "x", "B_1": ""}, {"A": "x", "B_1": ""}),
        (values.patterns, {"loss": r"l1:(?P<value>\S+)"}, {"loss": r"l1:(?P<value>\S+)"}),
        (values.expectations, {"f": {"default": [1, 2]}}, {"f": {"default": (1.0, 2.0)}}),
        (values.device, "cpu:2", "cpu:2"),
        (values.one_of("any", "better"), "any", "any"),
    ],
)
def test_what_is_accepted(reader: Callable[[Any], object], given_value: object, result: object) -> None:
    assert reader(given_value) == result


@pytest.mark.parametrize(
    ("reader", "given_value", "says"),
    [
        (values.text, True, "expected text, found true"),
        (values.text, None, "expected text, found nothing"),
        (values.text, ["a"], "found a list"),
        (values.text, "a\0b", "control character"),
        (values.quoted, True, "quote it"),
        (values.quoted, None, "quote it"),
        (values.boolean, "on", "expected true or false, found 'on'"),
        (values.boolean, 1, "expected true or false"),
        (values.number, "20", "expected a number"),
        (values.number, True, "expected a number"),
        (values.number, float("nan"), "expected a number"),
        (values.positive, 0, "above 0"),
        (values.count, 0, "1 to 1000"),
        (values.count, 4.0, "whole number"),
        (values.count, True, "whole number"),
        (values.count, "1_000", "whole number"),
        (values.duration, "1:30", "expected a duration such as 30m"),
        (values.duration, "0s", "above 0"),
        (values.duration, -5, "expected a duration"),
        (values.duration, True, "expected a duration"),
        (values.duration, None, "expected a duration"),
        (values.interval, "0.01s", "0.02s"),
        (values.interval, "11s", "10s"),
        (values.warmup, "Auto", "auto or a duration"),
        (values.warmup, False, "auto or a duration"),
        (values.run_for, None, "auto, end or a duration such as 90s"),
        (values.run_for, "never", "auto, end or a duration such as 90s"),
        (values.run_for, "2s", "at least 5s"),
        (values.size, "2 gigabytes", "expected a size such as 2GB"),
        (values.size, 0, "above 0"),
        (values.slug, "../x", "expected a name"),
        (values.slug, "a..b", "expected a name"),
        (values.slug, "Upper", "expected a name"),
        (values.slug, "", "expected a name"),
        (values.slug, "a" * 65, "expected a name"),
        (values.slug, "a/b", "expected a name"),
        (values.slug, "-a", "expected a name"),
        (values.slug, "a\n", "expected a name"),
        (values.path, "/etc", "inside the repository"),
        (values.path, "~/x", "inside the repository"),
        (values.path, "a/../../b", "inside the repository"),
        (values.path, "", "inside the repository"),
        (values.path, ".git/config", "outside .git"),
        (values.path, "a\\..\\b", "inside the repository"),
        (values.file_path, "progress/", "the path of a file"),
        (values.file_path, ".", "the path of a file"),
        (values.metric, "gpu_utl", "expected one of gpu_util"),
        (values.metric, "section:", "expected one of"),
        (values.threshold, "0.8x", "improvement of 1x or more"),
        (values.threshold, "20%", "percentage points such as 20"),
        (values.threshold, -1, "0 to 100"),
        (values.threshold, 101, "0 to 100"),
        (values.threshold, True, "a number"),
        (values.threshold, None, "percentage points"),
        (values.command, "  ", "empty"),
        (values.command, 5, "expected a command"),
        (values.command, ["a", True], "quote it"),
        (values.words, "--batch_size", "expected a list"),
        (values.paths, ["/x"], "inside the repository"),
        (values.variables, ["A"], "expected a mapping"),
        (values.variables, {"A B": "x"}, "not a name of a variable"),
        (values.variables, {"A": True}, "A: expected text, found true: quote it"),
        (values.variables, {"A": "x\0"}, "control"),
        (values.patterns, {"loss": "("}, "loss: no regular expression"),
        (values.patterns, {"loss": r"\d+"}, "loss: expected a group named value"),
        (values.patterns, [], "expected a mapping"),
        (values.expectations, {"f": 5}, "expected a mapping"),
        (values.expectations, {"f": {"d": [1]}}, "d: expected two numbers"),
        (values.expectations, {"f": {"d": [2, 1]}}, "lower number first"),
        (values.device, "cuda", "expected auto, nvml"),
        (values.device, "cpu:0", "expected auto"),
        (values.device, "cpu:x", "expected auto"),
        (values.device, "replay:", "expected auto"),
        (values.device, None, "expected auto"),
        (values.one_of("any", "better"), "best", "expected any or better, found 'best'"),
        (values.one_of("any", "better"), ["any"], "expected any or better"),
    ],
)
def test_what_is_refused_and_why(reader: Callable[[Any], object], given_value: object, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        reader(given_value)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_ratio_is_told_from_points() -> None:
    assert isinstance(values.threshold("1.2x"), Ratio)
    assert values.threshold("1.2x") == 1.2
    assert not isinstance(values.threshold("20pp"), Ratio)


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("auto", DeviceChoice("auto")),
        ("nvml", DeviceChoice("nvml")),
        ("cpu", DeviceChoice("cpu")),
        ("cpu:2", DeviceChoice("cpu", cores=2)),
        ("cpu:0.5", DeviceChoice("cpu", cores=0.5)),
        ("replay:runs/0001-x", DeviceChoice("replay", path="runs/0001-x")),
        ("replay:runs/0001-x@4x", DeviceChoice("replay", path="runs/0001-x", speed=4)),
        ("replay:a@66.6667x", DeviceChoice("replay", path="a", speed=66.6667)),
        ("replay:a@b", DeviceChoice("replay", path="a@b")),
    ],
)
def test_a_device_is_taken_apart(text: str, choice: DeviceChoice) -> None:
    assert values.device_choice(text) == choice


READERS = [
    reader
    for name, reader in vars(values).items()
    if callable(reader)
    and getattr(reader, "__module__", "") == values.__name__
    and not name.startswith("_")
    and name not in ("Ratio", "DeviceChoice", "one_of", "shown")
]


@given(
    st.sampled_from(READERS),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    ),
)
def test_no_value_raises_anything_else(reader: Callable[[Any], object], value: object) -> None:
    try:
        reader(value)
    except ValueError as error:
        assert str(error)
