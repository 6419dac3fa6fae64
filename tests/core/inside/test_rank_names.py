"""How ranks and their devices are named."""

from __future__ import annotations

import pytest
from tests.support.rank_lines import rank

from gpudebug.core.inside.rank_names import bare_uuid, named, place_of


@pytest.mark.parametrize(
    ("device", "uuid", "visible", "place"),
    [
        ("cpu", None, None, None),
        (None, "GPU-a", "0", None),
        ("cuda:1", "GPU-a", "0,1", "GPU-a"),
        ("cuda:1", None, "4, 5", "GPU 5"),
        ("cuda:1", None, None, "GPU 1"),
        ("cuda", None, "7", "GPU 7"),
        ("cuda:3", None, "4,5", None),
    ],
)
def test_the_place_of_a_rank(
    device: str | None, uuid: str | None, visible: str | None, place: str | None
) -> None:
    assert place_of(rank(0, device=device, uuid=uuid, visible=visible)) == place


def test_ranks_are_named_up_to_eight() -> None:
    assert (named([3]), named([0, 1])) == ("rank 3", "ranks 0, 1")
    assert named(list(range(10))) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more"


def test_a_uuid_is_bare_of_its_kind() -> None:
    assert bare_uuid("GPU-Ab") == bare_uuid("MIG-ab") == bare_uuid("ab") == "ab"
