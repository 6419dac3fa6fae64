"""A campaign as Markdown for a pull request, read as GitHub reads it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from tests.support.campaign_data import a_gain, a_hypothesis, a_run, a_step, campaign_data, empty_data

from gpudebug.engine.report import markdown
from gpudebug.engine.report.markdown import summary

GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
HOSTILE = (
    "# @octocat #123 | <script>`x`</script> ![i](http://e.example) $x$\n\n- \u202e</details>\x1b[31m ```"
)
PATCH = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-a\n+b\tc\n"


def parsed(text: str) -> SyntaxTreeNode:
    return SyntaxTreeNode(GITHUB.parse(text))


def kinds(text: str) -> list[str]:
    return [node.type for node in parsed(text).children]


def cells(text: str) -> list[list[str]]:
    table, *_ = [node for node in parsed(text).children if node.type == "table"]
    return [[c.children[0].content for c in row.children] for row in table.children[1].children]


def headings(text: str) -> list[str]:
    return [n.children[0].content for n in parsed(text).children if n.type == "heading"]


ACCEPTED = campaign_data(
    a_hypothesis(1, accepted=1, diff=PATCH, title="Too few workers"),
    a_hypothesis(2, "REJECTED", 1.0, throughput_ratio=None),
    a_hypothesis(3, "UNTESTED", title="Not yet"),
    gain=a_gain(20.0, 60.3, a_step(1, 20.0, 60.0)),
    causes=[{"id": "x", "title": "A slow disk", "probability": 0.4, "ceiling_pp": 12.3}],
    skipped=[{"run": "0004-h2", "why": "manifest.json: the run is unfinished"}],
)


def test_it_tells_what_was_tested_accepted_and_left() -> None:
    text = summary(ACCEPTED)
    assert headings(text) == [
        "GPU utilisation: act-relative-rtc",
        "Accepted",
        "Environment",
        "Verify",
        "What is left",
    ]
    effects = ("+40.0pp (95% CI +38.0 to +42.0)", "+1.0pp (95% CI -1.0 to +3.0)")
    changes = ("`--set --num_workers=1`", "`--set --num_workers=2`")
    assert cells(text) == [
        ["1", "Too few workers", changes[0], "VALIDATED, accepted", effects[0], "3.00x", "CONVERGING"],
        ["2", "Cause number 2", changes[1], "REJECTED", effects[1], "unknown", "CONVERGING"],
    ]
    assert "1 VALIDATED, 1 REJECTED, 1 UNTESTED.\n" in text
    assert "Together, as measured: gpu_util 20.0% to 60.3%: **+40.3pp**." in text
    assert "```diff\n--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-a\n+b\tc\n```\n" in text
    assert "```sh\ngpudebug verify\n```\n" in text
    for line in (
        "- Gap: 29.7pp below the reference.",
        "- Not tested: hypothesis 3, Not yet",
        "- Suspected: A slow disk (probability 0.40, at most 12pp)",
        "- Left out: run 0004-h2, manifest.json: the run is unfinished",
        "`python train.py --num_workers=0 --data=set`",
        "- Model: ACTPolicy, 51,616,391 parameters trained",
        "- Throughput: 2410 steps/s",
        "- Reward: mean_reward -20 to 3",
        "- Packages: torch 2.9.0, numpy 2.3.0",
        "| policy_inference | 50 | 12.3 ms | 81% |",
        "- Runs: 4 COMPLETED",
    ):
        assert f"{line}\n" in text


def test_nothing_of_the_machine_is_told_that_a_stranger_should_not_read() -> None:
    text = summary(ACCEPTED)
    for private in ("secret-host", "/home/someone", "/somewhere"):
        assert private not in text


def test_a_campaign_that_has_not_begun_says_what_is_next() -> None:
    text = summary(empty_data())
    assert headings(text) == ["GPU utilisation: act-relative-rtc", "What is left"]
    assert "table" not in kinds(text)
    assert "- Next: no hypothesis is left to test.\n" in text


def test_accepted_and_not_measured_since_is_said() -> None:
    data = campaign_data(a_hypothesis(1, accepted=1), gain=a_gain(20.0, None, a_step(1, 20.0, 60.0)))
    assert "Together: not measured yet; `gpudebug next` measures it.\n" in summary(data)


def test_the_gpu_that_is_apart_is_named() -> None:
    data = campaign_data(a_hypothesis(1))
    line = "gpu_util least 3.7% (GPU 0), median 99.9%, most 99.9% (GPU 3); GPU 0 is apart"
    data["machine"]["run"] = "0001-baseline-workload"
    data["runs"]["0001-baseline-workload"] = {"outcome": "COMPLETED", "across": [line]}
    assert "- GPUs: gpu_util least 3.7% (GPU 0), median 99.9%, " in summary(data)


def test_a_processor_is_not_told_as_a_gpu() -> None:
    data = campaign_data(a_hypothesis(1), devices=("CPU",))
    text = summary(data)
    assert headings(text)[0] == "Utilisation of the CPU stand-in: act-relative-rtc"
    assert "- Device: CPU stand-in, " in text


def hostile() -> dict[str, Any]:
    made = a_hypothesis(
        1,
        accepted=1,
        title=HOSTILE,
        intervention=f"--set --a='{HOSTILE}'",
        diff=f"+{HOSTILE}\n+`````\n+\u202e\x1b[31m\r\n",
        figures={"loss": HOSTILE},
    )
    claimed = a_hypothesis(2, "VALIDATED", None, verified=False, claimed=HOSTILE, title=HOSTILE)
    data = campaign_data(
        made,
        claimed,
        a_hypothesis(3, "UNTESTED", title=HOSTILE),
        gain=a_gain(20.0, 60.0, a_step(1, 20.0, 60.0, HOSTILE), gap_text=HOSTILE, gained_text=HOSTILE),
        causes=[{"id": "x", "title": HOSTILE, "probability": 0.4, "ceiling_pp": None}],
        skipped=[{"run": HOSTILE, "why": HOSTILE}],
        runs=[a_run("0001-baseline-workload")],
    )
    data["status"]["campaign"] = HOSTILE
    data["status"]["next"]["why"] = HOSTILE
    for device in data["machine"]["devices"]:
        device.update(name=HOSTILE, driver=HOSTILE)
    data["machine"].update(packages={"torch": HOSTILE}, commit=HOSTILE, model=HOSTILE, command=HOSTILE)
    data["machine"]["sections"][0]["name"] = HOSTILE
    return data


def test_no_text_makes_markup_a_mention_or_a_link() -> None:
    text = summary(hostile())
    assert kinds(text) == [
        *("heading", "paragraph", "paragraph", "table"),
        *("heading", "paragraph", "paragraph", "html_block", "fence", "html_block"),
        *("heading", "paragraph", "bullet_list", "table"),
        *("heading", "fence", "paragraph", "heading", "bullet_list", "paragraph"),
    ]
    assert len(cells(text)) == 2
    markup = GITHUB.render(text)
    of_ours = "h2 h3 p strong table thead tbody tr th td details summary pre code ul li span"
    assert set(re.findall(r"</?([a-z]\w*)", markup)) <= {*of_ours.split()}
    prose = re.sub(r"<code.*?</code>", "", markup, flags=re.DOTALL)
    assert not re.search(r"@\w|#\d|://", prose)
    assert not re.search("[\u202e\x1b]", text)


def test_no_patch_closes_its_fence_and_a_long_one_is_cut() -> None:
    text = summary(hostile())
    assert "``````diff\n" in text
    long = "".join(f"+line {i}\n" for i in range(500))
    data = campaign_data(
        a_hypothesis(1, accepted=1, diff=long), gain=a_gain(20.0, 60.0, a_step(1, 20.0, 60.0))
    )
    text = summary(data)
    assert f"+line {markdown.LINES - 1}\n```\n\n420 more lines are not shown.\n" in text


def test_a_thousand_hypotheses_fit_into_a_pull_request() -> None:
    many = [
        a_hypothesis(n, accepted=n, title=HOSTILE * 9, intervention="|`" * 400, diff="+`|\n" * 999)
        for n in range(1, 1001)
    ]
    steps = [a_step(n, 20.0, 60.0) for n in range(1, 1001)]
    text = summary(campaign_data(*many, runs=[a_run("0001-x")], gain=a_gain(20.0, 60.0, *steps)))
    assert len(text) < 60_000
    assert len(cells(text)) == markdown.ROWS
    assert "960 more were tested; they are not listed here.\n" in text
    assert "990 more accepted changes are not listed here" in text


@pytest.mark.parametrize("diff", ["", None, "+no end of line"])
def test_what_has_no_patch_shows_none(diff: str | None) -> None:
    data = campaign_data(
        a_hypothesis(1, accepted=1, diff=diff), gain=a_gain(20.0, 60.0, a_step(1, 20.0, 60.0))
    )
    assert ("<details>" in summary(data)) == bool(diff)
