"""Each kind of value: what it accepts, and that a wrong one names what was expected."""

from __future__ import annotations

from typing import Annotated, Any, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from gpudebug.core.config import values
from gpudebug.core.config.values import Ratio
from gpudebug.core.yaml.models import problems


def read(kind: Any, value: object) -> Any:
    return TypeAdapter(kind).validate_python(value)


def refused(kind: Any, value: object) -> str:
    """What is said of it as the value of a key."""
    group: type[BaseModel] = create_model("Group", key=(kind, ...))
    with pytest.raises(ValidationError) as caught:
        group.model_validate({"key": value})
    return problems(caught.value, group, lambda path, valid: valid)[0].message


@pytest.mark.parametrize(
    ("kind", "given_value", "result"),
    [
        (values.Text, "x\ny", "x\ny"),
        (values.Text, 5, "5"),
        (values.Boolean, True, True),
        (values.Number, 5, 5.0),
        (values.Target, 0.5, 0.5),
        (values.Count, 4, 4),
        (values.Duration, "30m", 1800.0),
        (values.Duration, 90, 90.0),
        (values.Interval, "0.02s", 0.02),
        (values.Warmup, "auto", None),
        (values.Warmup, 0, 0.0),
        (values.Warmup, "30s", 30.0),
        (values.RunFor, "auto", None),
        (values.RunFor, "end", "end"),
        (values.RunFor, "90s", 90.0),
        (values.Size, "2GB", 2 * 2**30),
        (values.Slug, "act-relative_rtc.2", "act-relative_rtc.2"),
        (values.Path, ".", "."),
        (values.Path, "a/b c", "a/b c"),
        (values.FilePath, "progress/x.md", "progress/x.md"),
        (values.Metric, "gpu_util", "gpu_util"),
        (values.Metric, "section:get_actions.policy", "section:get_actions.policy"),
        (values.Threshold, 20, 20.0),
        (values.Threshold, "20pp", 20.0),
        (values.Command, "a b", "a b"),
        (values.Command, ["a", "b c"], ("a", "b c")),
        (values.Words, [], ()),
        (values.Paths, [".venv", "data"], (".venv", "data")),
        (values.Variables, {"A": "x", "B_1": ""}, {"A": "x", "B_1": ""}),
        (values.Patterns, {"loss": r"l1:(?P<value>\S+)"}, {"loss": r"l1:(?P<value>\S+)"}),
        (values.Expectations, {"f": {"default": [1, 2]}}, {"f": {"default": (1.0, 2.0)}}),
        (values.Device, "cpu:2", "cpu:2"),
        (values.Devices, "mean", None),
        (values.Devices, "least", "least"),
    ],
)
def test_what_is_accepted(kind: Any, given_value: object, result: object) -> None:
    assert read(kind, given_value) == result


@pytest.mark.parametrize(
    ("kind", "given_value", "says"),
    [
        (values.Text, True, "expected text, found true"),
        (values.Text, None, "expected text, found nothing"),
        (values.Text, ["a"], "found a list"),
        (values.Text, "a\0b", "control character"),
        (values.Quoted, True, "quote it"),
        (values.Quoted, None, "quote it"),
        (values.Boolean, "on", "expected true or false, found 'on'"),
        (values.Boolean, 1, "expected true or false"),
        (values.Number, "20", "expected a number"),
        (values.Number, True, "expected a number"),
        (values.Number, float("nan"), "expected a number"),
        (values.Target, 0, "above 0"),
        (values.Count, 0, "1 to 1000"),
        (values.Count, 4.0, "whole number"),
        (values.Count, True, "whole number"),
        (values.Count, "1_000", "whole number"),
        (values.Duration, "1:30", "expected a duration such as 30m"),
        (values.Duration, "0s", "above 0"),
        (values.Duration, -5, "expected a duration"),
        (values.Duration, True, "expected a duration"),
        (values.Duration, None, "expected a duration"),
        (values.Interval, "0.01s", "0.02s"),
        (values.Interval, "11s", "10s"),
        (values.Warmup, "Auto", "auto or a duration"),
        (values.Warmup, False, "auto or a duration"),
        (values.RunFor, None, "auto, end, a duration such as 90s, or phase ppo 60s"),
        (values.RunFor, "never", "auto, end, a duration such as 90s, or phase ppo 60s"),
        (values.RunFor, "2s", "at least 5s"),
        (values.Size, "2 gigabytes", "expected a size such as 2GB"),
        (values.Size, 0, "above 0"),
        (values.Slug, "../x", "expected a name"),
        (values.Slug, "a..b", "expected a name"),
        (values.Slug, "Upper", "expected a name"),
        (values.Slug, "", "expected a name"),
        (values.Slug, "a" * 65, "expected a name"),
        (values.Slug, "a/b", "expected a name"),
        (values.Slug, "-a", "expected a name"),
        (values.Slug, "a\n", "expected a name"),
        (values.Path, "/etc", "inside the repository"),
        (values.Path, "~/x", "inside the repository"),
        (values.Path, "a/../../b", "inside the repository"),
        (values.Path, "", "inside the repository"),
        (values.Path, ".git/config", "outside .git"),
        (values.Path, "a\\..\\b", "inside the repository"),
        (values.FilePath, "progress/", "the path of a file"),
        (values.FilePath, ".", "the path of a file"),
        (values.Metric, "gpu_utl", "expected one of gpu_util"),
        (values.Metric, "section:", "expected one of"),
        (values.Threshold, "0.8x", "improvement of 1x or more"),
        (values.Threshold, "20%", "percentage points such as 20"),
        (values.Threshold, -1, "0 to 100"),
        (values.Threshold, 101, "0 to 100"),
        (values.Threshold, True, "percentage points"),
        (values.Threshold, None, "percentage points"),
        (values.Command, "  ", "empty"),
        (values.Command, 5, "expected a command"),
        (values.Command, ["a", True], "quote it"),
        (values.Words, "--batch_size", "expected a list"),
        (values.Paths, ["/x"], "inside the repository"),
        (values.Variables, ["A"], "expected a mapping"),
        (values.Variables, {"A B": "x"}, "not a name of a variable"),
        (values.Variables, {"A": True}, "A: expected text, found true: quote it"),
        (values.Variables, {"A": "x\0"}, "control"),
        (values.Patterns, {"loss": "("}, "loss: no regular expression"),
        (values.Patterns, {"loss": r"\d+"}, "loss: expected a group named value"),
        (values.Patterns, [], "expected a mapping"),
        (values.Expectations, {"f": 5}, "expected a mapping"),
        (values.Expectations, {"f": {"d": [1]}}, "d: expected two numbers"),
        (values.Expectations, {"f": {"d": [2, 1]}}, "lower number first"),
        (values.Device, "cuda", "expected auto, nvml"),
        (values.Device, "cpu:0", "expected auto"),
        (values.Device, "cpu:x", "expected auto"),
        (values.Device, "replay:", "expected auto"),
        (values.Device, None, "expected auto"),
        (values.Devices, "best", "expected mean, least or working, found 'best'"),
        (values.Devices, ["mean"], "expected mean, least or working"),
    ],
)
def test_what_is_refused_and_why(kind: Any, given_value: object, says: str) -> None:
    said = refused(kind, given_value)
    assert says in said
    assert "\n" not in said


def test_a_ratio_is_told_from_points() -> None:
    assert isinstance(read(values.Threshold, "1.2x"), Ratio)
    assert read(values.Threshold, "1.2x") == 1.2
    assert not isinstance(read(values.Threshold, "20pp"), Ratio)


KINDS = [kind for name, kind in vars(values).items() if get_origin(kind) is Annotated and name != "Annotated"]


@given(
    st.sampled_from(KINDS),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    ),
)
def test_no_value_raises_anything_else(kind: Any, value: object) -> None:
    try:
        read(kind, value)
    except ValidationError as error:
        assert str(error)
