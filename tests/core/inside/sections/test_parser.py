"""Section reports read: what is in them, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.section_reports import node, report, section

from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside.sections import Section, SectionNode, read_report
from gpudebug.core.inside.sections.parser import NOTE, as_entry, operations_of

Change = Callable[[dict[str, Any]], object]


def read(document: Any) -> Any:
    return read_report(json.dumps(document).encode(), "sections.json")


def test_a_report_is_read_whole() -> None:
    tree = [node("step", 100, 2.0, node("load", 100, 1.0))]
    found = read(report(section("load", category="Data"), section("step", mean=0.02), tree=tree, rank=3))
    assert found.sections[0] == Section(**section("load", category="Data"))
    assert found.tree == (SectionNode("step", 100, 2.0, (SectionNode("load", 100, 1.0),)),)
    assert (found.rank, found.iterations, found.warmup, found.sync) == (3, 100, 3, False)
    assert found.iterations_per_s == 10


def test_what_may_be_absent_is_unknown() -> None:
    least = {"format": "gpudebug-sections", "version": 1, "sections": []}
    found = read(least)
    assert (found.sections, found.tree, found.iterations, found.iterations_per_s) == ((), (), None, None)
    bare = {k: v for k, v in section("x").items() if k in "name calls total_s self_s mean_s min_s max_s"}
    (only,) = read({**least, "sections": [bare]}).sections
    assert (only.p50_s, only.mem_peak_mb, only.errors) == (None, None, 0)


def test_what_was_never_called_is_left_out() -> None:
    assert read(report(section("x", 0, min_s=None))).sections == ()


@pytest.mark.parametrize("key", ["p50_s", "p95_s", "mem_peak_mb", "gpu_peak_mb"])
def test_a_figure_that_may_be_absent_and_is_no_number_is_unknown(key: str) -> None:
    found = read(report(section("x", **{key: float("nan")})))
    assert getattr(found.sections[0], key) is None


def put(key: str, value: Any) -> Change:
    """Set a key of the report's second section."""
    return lambda r: r["sections"][1].update({key: value})


BAD: dict[str, tuple[Change, str]] = {
    "negative": (put("total_s", -0.5), "section 'forward': total_s is negative: -0.5"),
    "not a number": (put("min_s", float("nan")), "section 'forward': min_s is nan, no figure"),
    "infinite": (put("max_s", float("inf")), "section 'forward': max_s is inf, no figure"),
    "too large for a float": (put("max_s", 10**400), "section 'forward': max_s is inf, no figure"),
    "impossible": (put("total_s", 1e300), "section 'forward': total_s cannot be: 1e+300"),
    "a text": (put("mean_s", "0.1"), "section 'forward': mean_s is no number: '0.1'"),
    "a truth": (put("mean_s", True), "section 'forward': mean_s is no number: True"),
    "missing": (lambda r: r["sections"][1].pop("self_s"), "section 'forward': self_s is missing"),
    "null": (put("calls", None), "section 'forward': calls is missing"),
    "half a call": (put("calls", 1.5), "section 'forward': calls is no count: 1.5"),
    "negative calls": (put("calls", -3), "section 'forward': calls is no count: -3"),
    "negative memory": (put("gpu_peak_mb", -1), "section 'forward': gpu_peak_mb is negative: -1"),
    "no name": (put("name", None), "a section has no name"),
    "no section": (lambda r: r["sections"].__setitem__(1, 7), "a section has no name"),
    "twice": (put("name", "load"), "section 'load' is in it twice"),
    "no sections": (lambda r: r.pop("sections"), "sections is missing"),
    "sections a mapping": (lambda r: r.update(sections={}), "sections is no list"),
    "a tree of texts": (lambda r: r.update(tree=["x"]), "a section has no name"),
    "a negative tree": (lambda r: r.update(tree=[node("a", 1, -1.0)]), "section 'a': total_s is negative"),
    "notes a text": (lambda r: r.update(notes="few"), "notes is no list"),
    "open a number": (lambda r: r.update(open=1), "open is no list"),
    "tree a mapping": (lambda r: r.update(tree={"a": 1}), "tree is no list"),
    "negative iterations": (lambda r: r.update(iterations=-1), "iterations is no count: -1"),
    "another format": (lambda r: r.update(format="cProfile"), 'its "format" is not "gpudebug-sections"'),
    "a newer version": (lambda r: r.update(version=2), "of version 2, this gpudebug reads 1"),
    "no version": (lambda r: r.pop("version"), "of version None, this gpudebug reads 1"),
}


@pytest.mark.parametrize(("change", "says"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named(change: Change, says: str) -> None:
    document = report(section("load"), section("forward"))
    change(document)
    with pytest.raises(GpudebugError) as told:
        read(document)
    assert says in told.value.message
    assert told.value.file == "sections.json"
    assert told.value.next


def test_the_line_of_a_bad_figure_is_named() -> None:
    document = json.dumps(report(section("load"), section("forward", total_s=-1)), indent=1)
    with pytest.raises(GpudebugError) as told:
        read_report(document.encode(), "f")
    assert told.value.line is not None
    assert '"total_s": -1' in document.splitlines()[told.value.line - 1]


NO_JSON = {
    "cut off": (json.dumps(report(section("load")))[:-30], "is cut off"),
    "cut in a name": ('{"format": "gpudebug-sec', "is cut off"),
    "rubbish": ("{rubbish}", "is not JSON"),
    "a list": ("[1, 2]", "is not a section report"),
    "deep": ("[" * 100_000, "is not a section report"),
    "digits": ("1" * 10_000, "is not a section report"),
    "empty": ("", "is cut off"),
}


@pytest.mark.parametrize(("text", "says"), NO_JSON.values(), ids=NO_JSON)
def test_what_is_no_report_is_refused(text: str, says: str) -> None:
    with pytest.raises(GpudebugError) as told:
        read_report(text.encode(), "f")
    assert says in str(told.value)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(GpudebugError):
        read_report(bytes(range(256)), "f")


def test_half_a_surrogate_in_a_name_can_be_written() -> None:
    (found,) = read_report(json.dumps(report(section("a\ud800b"))).encode(), "f").sections
    assert found.name.encode() == b"a?b"


def test_a_byte_order_mark_does_no_harm() -> None:
    assert read_report(b"\xef\xbb\xbf" + json.dumps(report(section("x"))).encode(), "f").sections


def test_what_lies_too_deep_counts_above() -> None:
    tree = node("x", 1, 1.0)
    for _ in range(180):
        tree = node("x", 1, 1.0, tree)
    depth, nodes = 0, read(report(tree=[tree])).tree
    while nodes:
        depth, nodes = depth + 1, nodes[0].children
    assert 100 <= depth < 110


def test_wherever_it_ends_a_cut_off_report_is_called_so() -> None:
    whole = json.dumps(report(section("load", mean_s=1.5e-07), pid=None))
    for end in range(len(whole)):
        with pytest.raises(GpudebugError, match="is cut off: its JSON has no end"):
            read_report(whole[:end].encode(), "f")


FIGURES = {
    "total_time": 25.0,
    "call_count": 2000,
    "avg_time": 0.0125,
    "min_time": 0.01,
    "max_time": 0.02,
    "memory_peak_mb": 12.5,
    "memory_avg_mb": 0.1,
    "gpu_memory_peak_mb": 0.0,
    "gpu_memory_avg_mb": 0.0,
}


def saved(**operations: Any) -> dict[str, Any]:
    return {
        "timestamp": 1.5,
        "summary": {"total_operations": 1, "operations": operations},
        "memory_snapshots": [],
    }


def test_it_is_read_as_sections() -> None:
    found = read_report(json.dumps(saved(env=FIGURES, never={"call_count": 0})).encode(), "r.json")
    (only,) = found.sections
    assert (only.name, only.calls, only.total_s, only.mean_s, only.min_s, only.max_s) == (
        ("env", 2000, 25.0, 0.0125, 0.01, 0.02)
    )
    assert (only.mem_peak_mb, only.gpu_peak_mb, found.notes, found.iterations) == (12.5, None, (NOTE,), None)


def test_its_summary_alone_is_one_too() -> None:
    assert operations_of(saved(a=FIGURES)["summary"]) == {"a": FIGURES}
    assert operations_of({"operations": [1]}) is None
    assert operations_of([]) is None


@pytest.mark.parametrize(
    ("figures", "what"),
    [
        ({**FIGURES, "avg_time": None}, "operation 'env': avg_time is missing"),
        ({**FIGURES, "max_time": -1.0}, "section 'env': max_s is negative: -1"),
        ({**FIGURES, "call_count": "many"}, "section 'env': calls is no count: 'many'"),
        (7, "operation 'env': call_count is missing"),
    ],
)
def test_what_is_wrong_is_named_of_operations(figures: Any, what: str) -> None:
    with pytest.raises(GpudebugError, match=r"r\.json") as raised:
        read_report(json.dumps(saved(env=figures), indent=1).encode(), "r.json")
    assert what in str(raised.value)


def test_a_peak_of_zero_is_unknown() -> None:
    assert as_entry("env", FIGURES)[0]["gpu_peak_mb"] is None
