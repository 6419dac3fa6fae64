"""What tasks say, as a scheduler hands it on."""

from __future__ import annotations

import json
from itertools import chain, zip_longest

import pytest

from gpudebug.core.cluster.pieces import LONGEST_LINE, lines_of, messages_in

LONG = {"devices": [{"name": 'a "GPU" \\ é', "index": i} for i in range(64)]}


def encoded(*lines: str) -> list[bytes]:
    return [line.encode() for line in lines]


def test_a_short_message_is_one_line() -> None:
    (line,) = lines_of("n1", {"ready": True})
    assert json.loads(line) == {"node": "n1", "ready": True}
    assert messages_in(encoded("a library's chatter", "0: " + line, "{torn", "[]", '{"node": 3}')) == [
        {"node": "n1", "ready": True}
    ]


@pytest.mark.parametrize("message", [LONG, {"text": '"' * 5000}, {"text": "\\" * 5000}, {"text": "é" * 5000}])
def test_long_messages_of_several_nodes_come_through_in_any_mixture(message: dict[str, object]) -> None:
    nodes = ["n" * 64, "n2", "n3"]
    each = [lines_of(node, message) for node in nodes]
    assert all(len(line.encode()) < 1024 for line in chain(*each))
    assert max(len(line) for line in chain(*each)) <= LONGEST_LINE
    mixed = [line for row in zip_longest(*each) for line in row if line is not None]
    assert [m["node"] for m in messages_in(encoded(*mixed))] == nodes
    assert messages_in(encoded(*mixed)) == [{"node": node, **message} for node in nodes]


def test_a_message_that_lacks_a_piece_is_nothing_and_the_next_one_is_whole() -> None:
    lines = lines_of("n1", LONG)
    for lost in range(len(lines)):
        torn = lines[:lost] + lines[lost + 1 :]
        assert messages_in(encoded(*torn, *lines)) == [{"node": "n1", **LONG}]
    for odd in ({"piece": 1}, {"piece": [0, 1], "text": 1}, {"piece": [0, 1], "text": '{"node": "n2"}'}):
        assert messages_in(encoded(json.dumps({"node": "n1", **odd}))) == []
