"""A root cause's file is read strictly: what is wrong is said with its line and what to write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.causes import FILE, TEXT, cause, having

from gpudebug.core.catalogue import collect, read_cause
from gpudebug.core.errors import CatalogueError, UsageError


def test_a_file_says_a_cause() -> None:
    found = cause()
    assert (found.id, found.group, found.signature[1].phase) == ("slow-thing", "sync", "data")
    assert found.interventions["lerobot"].set == {"num_workers": 4.0}
    assert found.knobs[0].direction == "up"


def test_the_text_says_another_group_than_the_folder() -> None:
    assert cause("group: python\n" + TEXT).group == "python"


@pytest.mark.parametrize(
    ("text", "line", "said", "next"),
    [
        (having("title: A", "titel: A"), 2, "unknown key titel", "write title"),
        (having("weight: 8", "wieght: 8"), 10, "unknown key signature 1.wieght", "write weight"),
        (having("direction: up, value", "direktion: up, value"), 18, "unknown key knobs 1.direktion", None),
        (having("{set: {num", "{sets: {num"), 15, "unknown key interventions.lerobot.sets", "lerobot.set"),
        (having("Make it fast.}", "Make it, or not.}"), 16, "unknown key interventions.any.or not", "quote"),
        (having("phase: data", "phase: dada"), 11, "signature 2.phase: expected data,", "write data"),
        (having("weight: 8", "weight: heavy"), 10, "signature 1.weight: expected a number", None),
        (having("fix: Make it fast.\n", ""), 1, "fix is missing", "add fix: …"),
        (having("words: [slow thing]", "words: slow"), 19, "words: expected a list", None),
        (having("{vision: 2, default: 1}", "7"), 6, "prior: expected a mapping", None),
        (having("title: A thing is slow", "title: [a]"), 2, "title: expected text, found a list", None),
        (
            having("id: slow-thing", "id: slow"),
            1,
            "but the file is named 'slow-thing'",
            "write id: slow-thing",
        ),
        (having("fix: Make it", "fix: &x Make it"), 20, "anchors and aliases", None),
        (having("title: A", "title: 'A"), 2, "broken YAML", None),
        ("- a\n", 1, "expected settings such as id: my-cause", None),
        ("", 1, "expected settings such as id: my-cause", None),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, said: str, next: str | None) -> None:
    with pytest.raises(CatalogueError) as e:
        cause(text)
    assert (e.value.file, e.value.line) == (FILE, line)
    assert said in e.value.message
    assert e.value.next is not None and (next or "") in e.value.next


def test_a_misspelt_key_comes_before_what_is_missing_for_it() -> None:
    with pytest.raises(CatalogueError, match="unknown key titel") as e:
        cause(having("title: A", "titel: A"))
    assert "(and 1 more)" in e.value.message


@pytest.mark.parametrize(("group", "said"), [(None, "group is missing"), ("mine", "the folder 'mine' is no")])
def test_a_file_outside_a_group_has_to_name_one(group: str | None, said: str) -> None:
    with pytest.raises(CatalogueError, match=said) as e:
        cause(group=group)
    assert "group: " in (e.value.next or "")


def test_a_large_file_is_no_cause() -> None:
    with pytest.raises(CatalogueError, match="larger than 128 KiB"):
        cause(TEXT + "#" * 200_000)


def test_a_trusted_file_is_still_checked_for_its_shape() -> None:
    broken = having("thing/", "thing(/")
    assert read_cause(broken, FILE, group="sync", trusted=True).signature[1].stack == "thing(/"
    with pytest.raises(CatalogueError, match="unknown key"):
        read_cause(having("title: A", "titel: A"), FILE, group="sync", trusted=True)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(CatalogueError):
        cause(text)


ONE = cause()
OTHER = cause(having("id: slow-thing", "id: another"), "x/another.yaml", group="data-loading")


def test_causes_are_ordered_and_grouped() -> None:
    found = collect([(ONE, "a.yaml", False), (OTHER, "hypotheses/b.yaml", True)])
    assert [c.id for c in found.causes] == ["another", "slow-thing"]
    assert {group: len(causes) for group, causes in found.groups().items()} == {"data-loading": 1, "sync": 1}
    assert (found.own, found.files["slow-thing"]) == ({"another"}, "a.yaml")
    assert found.get("slow-thing") is ONE


@pytest.mark.parametrize(
    ("first", "said"), [(False, "that gpudebug ships, a.yaml"), (True, "another file, a.ya")]
)
def test_two_files_of_one_id_are_both_named(first: bool, said: str) -> None:
    with pytest.raises(CatalogueError, match=said) as e:
        collect([(ONE, "a.yaml", first), (ONE, "hypotheses/b.yaml", True)])
    assert e.value.file == "hypotheses/b.yaml"
    assert "my-slow-thing.yaml" in (e.value.next or "")


@pytest.mark.parametrize(
    ("id", "next"), [("slow-think", "gpudebug catalogue slow-thing"), ("zzz", "gpudebug catalogue")]
)
def test_an_unknown_id_is_answered_with_the_nearest(id: str, next: str) -> None:
    with pytest.raises(UsageError, match="the catalogue has no") as e:
        collect([(ONE, "a.yaml", False)]).cause(id)
    assert e.value.next == next
