from __future__ import annotations

from gpudebug.core.inside.stacks.patterns import pattern


def test_an_expression_is_compiled_once_and_letter_case_does_not_count() -> None:
    assert pattern("resize|pil/") is pattern("resize|pil/")
    assert pattern("resize|pil/").search("PIL/Image.py:Image.resize")
