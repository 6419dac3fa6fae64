from __future__ import annotations

import pytest

from gpudebug.core.progress.blocks import options, outline, plain


def headings(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.text.decode()) for heading in outline(text.encode()).headings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A", [(1, "A")]),
        ("## A\n### B\n", [(2, "A"), (3, "B")]),
        ("   ## A\n", [(2, "A")]),
        ("    ## code\n", []),
        ("\t## code\n", []),
        ("## A ##\n", [(2, "A")]),
        ("## C#\n", [(2, "C#")]),
        ("##\n", [(2, "")]),
        ("####### seven\n", []),
        ("#hashtag\n", []),
        ("##glued\n", []),
        ("###Hypothesis 3: x\n", [(3, "Hypothesis 3: x")]),
        ("> ## quoted\n", []),
        ("text ## A\n", []),
        ("## A\r\n## B\r\n", [(2, "A"), (2, "B")]),
        ("Title\n=====\n", [(1, "Title")]),
        ("A title\nof two lines\n==\n", [(1, "A title of two lines")]),
        ("\n=====\n", []),
        ("- item\n=====\n", []),
        ("## A\n=====\n", [(2, "A")]),
        ("A line\n-----\n", []),
    ],
)
def test_headings(text: str, expected: list[tuple[int, str]]) -> None:
    assert headings(text) == expected


@pytest.mark.parametrize(
    "hidden",
    [
        "```\n{}\n```\n",
        "~~~\n{}\n~~~\n",
        "```markdown\n{}\n```\n",
        "   ```\n{}\n   ```\n",
        "````\n```\n{}\n```\n````\n",
        "~~~\n```\n{}\n~~~\n",
        "```\n{}\n~~~\n{}\n```\n",
        "```\n{}\n    ```\n```\n",
        "```\n{}\n``` not a closer\n```\n",
        "```\r\n{}\r\n```\r\n",
        "<!--\n{}\n-->\n",
        "<!-- {}\n{}\n text -->\n",
        "- item\n  ```\n  {}\n  ```\n",
        "- item\n  - deeper\n\n    ```\n    {}\n    ```\n",
        "\t- item\n\n\t  ~~~\n\t  {}\n\t  ~~~\n",
    ],
)
def test_what_stands_in_a_fence_or_comment_is_no_heading(hidden: str) -> None:
    text = "# Before\n\n" + hidden.replace("{}", "## inside") + "\n# After\n"
    assert headings(text) == [(1, "Before"), (1, "After")]


@pytest.mark.parametrize(
    "text",
    [
        "``` not `a` fence\n## A\n",
        "``\n## A\n``\n",
        "    ```\n## A\n    ```\n",
        "text ```\n## A\n",
        "text <!--\n## A\n",
        "<!-- closed -->\n## A\n",
        "- item\n  ```\n  never closed, but the item ends\n## A\n",
        "- item\n  <!-- never closed, but the item ends\n## A\n",
    ],
)
def test_what_is_no_fence_hides_nothing(text: str) -> None:
    found = outline(text.encode())
    assert [(heading.level, heading.text) for heading in found.headings] == [(2, b"A")]
    assert found.unclosed is None


@pytest.mark.parametrize("opener", ["```", "~~~~", "<!--", "  ```python"])
def test_an_unclosed_fence_or_comment_runs_to_the_end_of_the_file(opener: str) -> None:
    found = outline(f"# A\n\n{opener}\n# B\n\n# C\n".encode())
    assert [heading.text for heading in found.headings] == [b"A"]
    assert found.unclosed == 3


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", ">>>>>>> branch", "||||||| base", "<<<<<<<", ">>>>>>>\r"])
def test_conflict_markers_are_found_where_they_begin_a_line(marker: str) -> None:
    assert outline(f"a\n{marker}\nb\n".encode()).conflict == 2


@pytest.mark.parametrize(
    "text",
    [
        "```\n<<<<<<< HEAD\n```\n",
        " <<<<<<< HEAD\n",
        "<<<<<<<< eight\n",
        "A title\n=======\n",
        "=======\n",
        "a <<<<<<< b\n",
    ],
)
def test_what_looks_like_a_conflict_marker_and_is_none(text: str) -> None:
    assert outline(text.encode()).conflict is None


def test_offsets_and_lines_are_those_of_the_file() -> None:
    body = b"intro\r\n\r\n## A\r\ntext\n\n```\n# no\n```\nTitle\n===\n### B"
    found = outline(body)
    assert [(body[h.start : h.end], h.line) for h in found.headings] == [
        (b"## A\r\n", 3),
        (b"Title\n===\n", 9),
        (b"### B", 11),
    ]
    assert [body[start:end] for start, end in found.opaque] == [b"```\n# no\n```\n"]


@pytest.mark.parametrize(
    "body",
    [
        b"- x\n  ```\ny\n" * 50_000,
        b"  ```\n" * 50_000,
        b"- <!--\n" * 200_000,
        b"- a\n  <!--\n" * 100_000,
        b"text\n" * 200_000 + b"===\n",
        b"`" * 1_000_000,
        b"=\n" * 300_000,
        b"a\n=\n" * 200_000,
        b" " * 1_000_000,
        b"\n" * 1_000_000,
    ],
    ids=range(10),
)
@pytest.mark.timeout(60)
def test_hostile_files_take_linear_time(body: bytes) -> None:
    outline(body)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("\\+40.0pp \\(95% CI \\+20.6 to \\+59.4\\)", "+40.0pp (95% CI +20.6 to +59.4)"),
        ("10 \u2013 30 steps/s", "10 to 30 steps/s"),
        ("\u22121.1pp", "-1.1pp"),
        ("C:\\Users", "C:\\Users"),
        ("slow \u2013 by far", "slow \u2013 by far"),
    ],
)
def test_a_figure_is_read_as_it_was_written(written: str, meant: str) -> None:
    assert plain(written) == meant


@pytest.mark.parametrize("written", ["--set --lr=a-b", "\u2013set \u2014lr=a-b", "\\--set \\-\\-lr=a-b"])
def test_an_option_begins_with_two_hyphens(written: str) -> None:
    assert options(written) == "--set --lr=a-b"


def test_a_dash_that_is_no_option_stays() -> None:
    assert options("--set --note=a\u2013b") == "--set --note=a\u2013b"
