from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.diagnoses import stacks

from gpudebug.core.inside.stacks.shares import hottest, importing, pattern, seen, share, together

RESIZE = "train.py:main data/images.py:load PIL/Image.py:resize"
LAYER = "train.py:main nets/net.py:forward modules/linear.py:Linear.forward"
TABLE = "train.py:main nets/net.py:forward nets/net.py:table"
SLEEP = "train.py:main sims/env.py:step"
CODE = {
    "data/images.py:load:87": "img = img.resize(size)",
    "nets/net.py:forward:12": "x = self.layer(x)",
    "nets/net.py:table:30": "rows.append(math.sin(i))",
    "sims/env.py:step:5": "time.sleep(0.01)",
}
MIXED = stacks(
    ("data", RESIZE, 87, 3.0, 3.0),
    ("forward", LAYER, 12, 4.0, 4.0),
    ("forward", TABLE, 30, 2.0, 1.8),
    ("other", SLEEP, 5, 1.0, 0.0),
    code=CODE,
)


@pytest.mark.parametrize(
    ("wanted", "expected", "place"),
    [
        ({"stack": r"images\.py:LOAD"}, 0.3, "images.py:87 load (running): `img = img.resize(size)`"),
        ({"stack": "PIL/"}, 0.3, "images.py:87 load (running): `img = img.resize(size)`"),
        ({"code": r"\bsleep\("}, 0.1, "env.py:5 step (waiting): `time.sleep(0.01)`"),
        ({"stack": "env.py", "code": "math"}, 0.3, "net.py:30 table (running): `rows.append(math.sin(i))`"),
        ({"stack": "net.py", "phase": "forward"}, 0.6, "net.py:12 forward (running): `x = self.layer(x)`"),
        ({"stack": "net.py", "phase": "data"}, 0.0, None),
        (
            {"stack": "table", "state": "waiting"},
            0.02,
            "net.py:30 table (waiting): `rows.append(math.sin(i))`",
        ),
        ({"stack": "main$"}, 1.0, "train.py main (running)"),
        ({"stack": "sims", "state": "running"}, 0.0, None),
        ({"stack": "nothing"}, 0.0, None),
    ],
)
def test_the_share_of_code_of_a_kind(wanted: dict[str, str], expected: float, place: str | None) -> None:
    value, found, part = share(MIXED, **wanted)
    assert 0.3 < part <= 1.0
    assert value == pytest.approx(expected)
    assert (None if found is None else str(found)) == place


@pytest.mark.parametrize(
    ("how", "expected", "function"),
    [
        ({}, 0.3, "data/images.py:load"),
        ({"phases": ("forward",)}, 0.2, "nets/net.py:table"),
        ({"state": "waiting"}, 0.1, "sims/env.py:step"),
        ({"phases": ("backward",)}, 0.0, None),
    ],
)
def test_the_hottest_function_of_ones_own(
    how: dict[str, object], expected: float, function: str | None
) -> None:
    value, place = hottest(MIXED, **how)  # type: ignore[arg-type]
    assert value == pytest.approx(expected)
    assert (place and place.frame) == function


def test_what_pytorch_does_for_a_function_is_not_the_functions_own() -> None:
    assert hottest(stacks(("forward", LAYER, 12, 4.0, 4.0), code=CODE)) == (0.0, None)


def test_a_stack_without_source_is_nobodys_own() -> None:
    told = stacks(("other", "a/b.py:c", 3, 1.0, 1.0))
    assert [one.own for one in seen(told)] == [None]
    assert hottest(told) == (0.0, None)
    assert share(told, stack="b.py")[0] == 1.0


def test_several_runs_are_one() -> None:
    other = stacks(("other", SLEEP, 5, 9.0, 0.0), ("data", RESIZE, 87, 1.0, 1.0), code=CODE)
    both = together([MIXED, other])
    assert both is not None
    assert both.seconds == 20.0
    assert share(both, stack="sims")[0] == pytest.approx(0.5)
    assert share(both, stack="images")[0] == pytest.approx(0.2)
    assert together([]) is None
    assert together([MIXED]) is MIXED


FRAMES = st.lists(st.sampled_from(["a/a.py:f", "b/b.py:g", "torch/x.py:h", "c.py:k"]), min_size=1, max_size=4)
ROWS = st.tuples(
    st.sampled_from(["data", "forward", "other"]),
    FRAMES,
    st.integers(1, 3),
    st.floats(0.01, 5),
    st.floats(0, 1),
)


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_shares_are_shares_and_states_add_up(rows: list[tuple[str, list[str], int, float, float]]) -> None:
    told = stacks(
        *((p, " ".join(f), line, s, s * ran) for p, f, line, s, ran in rows), code={"b/b.py:g:1": "x"}
    )
    every = share(told, stack=".")[0]
    assert every == pytest.approx(1.0)
    parts = [share(told, stack="b.py", state=state)[0] for state in ("running", "waiting")]
    assert sum(parts) == pytest.approx(share(told, stack="b.py")[0])
    assert 0.0 <= hottest(told)[0] <= 1.0


def test_what_is_done_in_a_function_goes_before_its_name() -> None:
    found = stacks(
        ("data", "t.py:main d.py:augment numpy/core.py:roll", 3, 3.0, 3.0),
        ("data", "t.py:main d.py:augment PIL/ImageFile.py:load", 4, 5.0, 5.0),
        ("data", "t.py:main d.py:augment", 5, 2.0, 2.0),
        code={"d.py:augment:5": "torch.save(image, path)"},
    )
    assert share(found, stack="augment").value == 1.0
    assert share(found, stack="augment", unless=r"ImageFile|torch\.save\(").value == pytest.approx(0.3)
    assert share(found, stack="augment", unless="nothing").value == 1.0


def test_inside_a_compiler_only_the_file_says_what_is_done() -> None:
    frames = "t.py:main _src/compiler.py:compile_or_get_cached _src/pjit.py:_cpp_pjit.<locals>.cache_miss"
    found = stacks(("other", frames, 0, 2.0, 2.0), ("other", "t.py:main t.py:get_cache", 0, 1.0, 1.0))
    assert share(found, stack=r"_src/compiler\.py:").value == pytest.approx(2 / 3)
    assert share(found, stack="get_cache").value == pytest.approx(1 / 3)
    assert share(found, stack="_cpp").value == 0.0


def test_an_expression_is_compiled_once_and_letter_case_does_not_count() -> None:
    assert pattern("resize|pil/") is pattern("resize|pil/")
    assert pattern("resize|pil/").search("PIL/Image.py:Image.resize")


@pytest.mark.parametrize(("imports", "steps", "expected"), [(2.0, 8.0, 0.0), (8.0, 2.0, 0.8)])
def test_an_import_is_start_up_unless_all_runs_below_one(
    imports: float, steps: float, expected: float
) -> None:
    """A compiler that is imported compiles nothing; `python -c 'import train'` trains below an import."""
    frame = "<frozen importlib._bootstrap>:_find_and_load"
    below = stacks(
        ("other", "train.py:<module> IMPORTS _dynamo/codegen.py:<module>", 1, imports, imports),
        ("other", "train.py:<module> train.py:step", 9, steps, steps),
    )
    below = below.model_copy(update={"frames": tuple(f.replace("IMPORTS", frame) for f in below.frames)})
    assert share(below, stack=r"_dynamo/").value == expected
    assert importing(below) == pytest.approx(imports / 10)
