"""Node lists as Slurm writes them."""

from __future__ import annotations

import pytest

from gpudebug.core.cluster.hostlists import MOST_NODES, expanded


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("n0", ("n0",)),
        ("n[0-1]", ("n0", "n1")),
        ("n[0-1,4],x", ("n0", "n1", "n4", "x")),
        ("gpu-[08-10]-ib", ("gpu-08-ib", "gpu-09-ib", "gpu-10-ib")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("", ()),
        ("(null)", ()),
        ("None assigned", ()),
        ("n[a-b]", ("na-b",)),
    ],
)
def test_lists_are_expanded(text: str, nodes: tuple[str, ...]) -> None:
    assert expanded(text) == nodes


@pytest.mark.parametrize("text", ["n[0-999999999]", "n[0-9999]m[0-9999]", "n[1-2", "][,["])
def test_what_is_no_list_ends_and_stays_small(text: str) -> None:
    assert len(expanded(text)) <= MOST_NODES
