"""All root causes together: by id, by group, and never two of one id."""

from __future__ import annotations

import pytest
from tests.support.causes import cause, having

from gpudebug.core.catalogue import collect
from gpudebug.core.errors import CatalogueError, UsageError

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
