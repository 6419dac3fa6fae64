"""One plain YAML document with the line of everything in it; all else is refused with its line."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.errors import ConfigError
from gpudebug.core.yaml import document
from gpudebug.core.yaml.document import named, nearest

BOMB = "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\n"


def test_scalars_follow_yaml_1_2() -> None:
    text = """
a: on
b: 1_000
c: 1:30
d: 2026-01-02
e: 0o17
f: 0x1f
g: yes
h: 08
i: .inf
j: 1e3
k: true
l:
m: ~
n: '5'
"""
    value = document.read(text, "f").value
    assert value["a"] == "on"
    assert value["b"] == "1_000"
    assert value["c"] == "1:30"
    assert value["d"] == "2026-01-02"
    assert value["e"] == "0o17"
    assert value["f"] == "0x1f"
    assert value["g"] == "yes"
    assert (value["h"], value["h"].text) == (8, "08")
    assert value["i"] == ".inf"
    assert (value["j"], value["j"].text) == (1000.0, "1e3")
    assert value["k"] is True
    assert value["l"] is None
    assert value["m"] is None
    assert value["n"] == "5"
    assert document.read("1e999", "f").value == "1e999"


def test_every_key_and_value_has_its_line() -> None:
    found = document.read("a: 1\nb:\n  c: |\n    x\n    y\n  d:\n    - 1\n    - {e: 2}\n", "f")
    assert found.value == {"a": 1, "b": {"c": "x\ny\n", "d": [1, {"e": 2}]}}
    assert found.keys == {("a",): 1, ("b",): 2, ("b", "c"): 3, ("b", "d"): 6, ("b", "d", 1, "e"): 8}
    assert found.lines[("b", "c")] == 4
    assert found.blocks == {("b", "c")}
    assert found.line(("b", "d", 1, "e")) == 8
    assert found.line(("b", "nowhere", "x")) == 3
    assert found.line(("b", "d", 7), key=True) == 6


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: [1, 2\nb: 3\n", 2, "broken YAML"),
        ("a: 'x\nb: 1\n", 1, "broken YAML"),
        ("a:\n\t- x\n", 2, "broken YAML"),
        ("a: 1\n b: 2\n", 2, "broken YAML"),
        ("a: 1\na: 2\n", 2, "is already on line 1"),
        ("a:\n  b: 1\n  c: 2\n  'b': 3\n", 4, "is already on line 2"),
        (BOMB, 1, "anchors"),
        ("a: 1\nb: *a\n", 2, "anchors"),
        ("x: 1\n<<: *x\n", 2, "anchors"),
        ("a: !!python/object/apply:os.system [id]\n", 1, "tags"),
        ("a: !!str 5\n", 1, "tags"),
        ("a: 1\nb: !x y\n", 2, "tags"),
        ("a: 1\n---\nb: 2\n", 2, "second YAML document"),
        ("? [a]\n: 1\n", 1, "expected a key"),
        ("a: 1\nb: \x07\n", 2, "broken YAML"),
        ("[" * 200, 1, "nested deeper"),
        ("a: " + "[" * 100000, 1, "nested deeper"),
        ("a: 1\nb: \ud800\n", 2, "not text"),
    ],
)
@pytest.mark.parametrize("loader", [yaml.CSafeLoader, yaml.SafeLoader])
def test_what_is_no_plain_document_is_refused(
    loader: type, text: str, line: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "_LOADER", loader)
    with pytest.raises(ConfigError, match=says) as caught:
        document.read(text, "gpudebug.yaml")
    assert (caught.value.file, caught.value.line) == ("gpudebug.yaml", line)
    assert caught.value.next


def test_size_is_capped() -> None:
    with pytest.raises(ConfigError, match="1 MiB"):
        document.read("#" * (2**20 + 1), "f")
    assert document.read("#" * 2**20, "f").value is None


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "--- \n...\n", "\ufeff"])
def test_an_empty_document_is_nothing(text: str) -> None:
    assert document.read(text, "f").value is None


@pytest.mark.parametrize("text", ["\ufeffa: 1\r\nb: |\r\n  x\r\n  y\r\n", "a: 1\nb: |\n  x\n  y\n"])
def test_a_mark_and_dos_line_ends_make_no_difference(text: str) -> None:
    assert document.read(text, "f").value == {"a": 1, "b": "x\ny\n"}


@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(
            st.sampled_from([*"[]{}:,-?&*!|>'\"%@`#\n \t", "a", "1", ": ", "- ", "\n  "]), max_size=30
        ).map("".join),
    )
)
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        found = document.read(text, "f")
    except ConfigError as error:
        assert error.file == "f"
        assert error.line is None or error.line >= 1
    else:
        assert all(line >= 1 for line in (*found.keys.values(), *found.lines.values()))


def test_places_and_names_as_a_person_says_them() -> None:
    assert named(("signature", 1, "weight")) == "signature 2.weight"
    assert nearest("datawait_share", ["data_wait_share", "gpu_util"]) == "data_wait_share"
    assert nearest("zzz", ["gpu_util"]) is None
