from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.support import reports
from tests.support.browser import Browser, chromium
from tests.support.reports import HOSTILE

from gpudebug.engine.report.page import embedded, page

# What turns the direction of writing shows nothing of its own, and is left out.
SHOWN = HOSTILE.replace("\u202e", "").replace("\u202c", "")
VOID = {"meta", "link", "input", "br", "img", "path", "rect", "circle"}
slow = pytest.mark.slow


class Reading(HTMLParser):
    """The elements of a page, its scripts and style sheets, and its text outside them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: dict[str, list[str]] = {"script": [], "style": []}
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in self.inline:
            self.inline[tag].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.inline:
            self.inline[self.open[-1]][-1] += data
        else:
            self.text += data

    def having(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def attributes(self, name: str) -> list[str]:
        return [str(found[name]) for _, found in self.elements if name in found]


def made(found: dict[str, Any], folder: Path = Path("/campaign/runs/report")) -> Reading:
    return Reading(page(found, folder))


def runs(folder: Path = Path("/campaign")) -> Path:
    return folder / "runs"


def spoilt() -> dict[str, Any]:
    """Somebody else's words wherever there is room for them."""
    gates = [{"name": HOSTILE, "value": HOSTILE, "threshold": HOSTILE, "result": "fail", "note": HOSTILE}]
    words = dict.fromkeys(("title", "why", "description", "test_method", "intervention", "problem"), HOSTILE)
    h = reports.hypothesis(
        1,
        **words,
        gates=gates,
        course=reports.course(HOSTILE, text=HOSTILE, metric=HOSTILE),
        notes=[HOSTILE],
        diff=f"+{HOSTILE}",
        command={"before": "train", "after": f"train {HOSTILE}"},
        differences=[{"name": HOSTILE, "before": HOSTILE, "after": HOSTILE}],
        sections=[{"name": HOSTILE, "a": None, "b": {"share": 0.5, "mean_s": 0.1}, "ratio": None}],
        probe=[{"part": "baseline", "runs": [], "figures": None, "reason": HOSTILE}],
    )
    found = reports.data(runs(), [h], settings=HOSTILE, notes=[HOSTILE])
    found["status"].update(campaign=HOSTILE, goal=HOSTILE)
    found["status"]["next"]["why"] = HOSTILE
    found["skipped"] = [{"run": HOSTILE, "why": HOSTILE}]
    found["reference"]["lines"] = [HOSTILE]
    found["causes"][0].update({"title": HOSTILE, "for": [HOSTILE], "against": [HOSTILE]})
    found["gain"]["accepted"] = [{**reports.accepted(1, 60.0), "title": HOSTILE}]
    found["machine"].update(host=HOSTILE, packages={HOSTILE: HOSTILE})
    for one in found["runs"].values():
        one["loss"]["name"] = f'<a href="javascript:alert(3)">{HOSTILE}</a>'
        one["reason"] = HOSTILE
        one["files"] = [HOSTILE]
    return found


def test_the_policy_allows_our_scripts_and_our_style_sheet_alone() -> None:
    found = made(reports.data(runs(), [reports.hypothesis(1)]))
    meta = next(m for m in found.having("meta") if m.get("http-equiv"))
    assert meta["http-equiv"] == "Content-Security-Policy"
    policy = dict(rule.strip().partition(" ")[::2] for rule in str(meta["content"]).split(";"))
    run = [text for text, s in zip(found.inline["script"], found.having("script"), strict=True) if not s]
    assert policy["script-src"].split() == [_digest(text) for text in run] and len(run) == 2
    assert policy["style-src"].split() == [_digest(text) for text in found.inline["style"]]
    rest = {"default-src": "'none'", "img-src": "data: blob:", "base-uri": "'none'", "form-action": "'none'"}
    assert {name: policy[name] for name in policy if name not in ("script-src", "style-src")} == rest
    # The first thing that a browser reads after how to read at all.
    assert [tag for tag, _ in found.elements[:4]] == ["html", "head", "meta", "meta"]


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_nothing_comes_from_elsewhere() -> None:
    found = made(spoilt())
    assert found.attributes("src") == [] and found.attributes("action") == []
    assert [
        href for href in found.attributes("href") if not href.startswith(("#", "../", "./", "data:,"))
    ] == []


def test_no_element_is_made_of_somebodys_words() -> None:
    ours = made(reports.data(runs(), [reports.hypothesis(1)]))
    found = made(spoilt())
    assert {tag for tag, _ in found.elements} - {tag for tag, _ in ours.elements} <= {"p", "ins"}
    assert len(found.having("script")) == 3
    assert not [name for _, attributes in found.elements for name in attributes if name.startswith("on")]
    assert found.attributes("style") == []
    assert found.text.count("<script>alert(1)</script>") > 20


def test_what_is_closed_was_opened_and_every_link_in_the_page_has_its_end() -> None:
    for built in (spoilt(), reports.nothing(runs()), reports.many(runs(), 30)):
        found = made(built)
        assert found.open == []
        ids = found.attributes("id")
        assert len(set(ids)) == len(ids)
        inner = [href[1:] for href in found.attributes("href") if href.startswith("#")]
        assert set(inner) <= set(ids)
        named = [v for a in ("aria-labelledby", "for") for v in found.attributes(a)]
        assert set(named) <= set(ids)


def test_headings_follow_each_other_and_tables_say_what_their_heads_are_of() -> None:
    found = made(reports.data(runs(), [reports.hypothesis(1), reports.untested(2)]))
    levels = [int(tag[1]) for tag, _ in found.elements if tag in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert all("scope" in attributes for attributes in found.having("th"))
    assert found.having("html") == [{"lang": "en"}]


GPU = {"index": 0, "uuid": "GPU-0", "name": "x", "reason": "too short", "gpu_util": None, "memory": None}
KNOWN = {
    "gpu_util": {"mean": 99.04, "p5": 98.0, "p50": 99.0, "p95": 100.0},
    "memory": {"mean_mb": 60000.0, "peak_mb": 61234.0},
    "power_w": {"mean": 150.2, "p5": 140.0, "p50": 150.0, "p95": 160.0},
    "power_limit_w": 700.0,
    "sm_clock_mhz": {"mean": 1980.0, "p5": 1980.0, "p50": 1980.0, "p95": 1980.0},
    "temperature_c": {"mean": 44.0, "p5": 44.0, "p50": 44.0, "p95": 44.0},
    "throttled": 0.37,
}


def test_a_run_of_several_gpus_has_a_row_for_each_below_what_is_apart() -> None:
    found = reports.data(runs(), [reports.hypothesis(1)])
    name = next(iter(found["runs"]))
    found["runs"][name] |= {
        "devices": [GPU, {**GPU, **KNOWN, "index": 1, "uuid": "GPU-1"}],
        "across": ["gpu_util least 3.7% (GPU 0); GPU 0 is apart"],
    }
    text = "".join(made(found).text.split())
    assert f"GPUsofeachrun{name}:{found['runs'][name]['across'][0]}".replace(" ", "") in text
    assert "GPU0unknownunknownunknown" in text
    assert "GPU199.0%98to10061234MB150of700W1980MHz44C37.0%" in text


def test_the_data_is_in_the_page_as_it_was_gathered() -> None:
    built = spoilt()
    built["settings"] = "</script><!-- \u2028\u2029 & \ud800"
    found = made(built)
    (text,) = [
        text
        for text, script in zip(found.inline["script"], found.having("script"), strict=True)
        if script == {"type": "application/json", "id": "gpudebug-data"}
    ]
    assert json.loads(text) == built
    assert text.isascii() and not set("<>&") & set(text)


def test_what_json_cannot_hold_is_no_page() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        embedded({"loss": float("nan")})


def test_links_lead_from_the_page_into_the_run_folders(hostile: Path) -> None:
    found = reports.data(hostile / "runs", [reports.hypothesis(1)])
    for one in found["runs"].values():
        for name in one["files"]:
            (Path(one["folder"]) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(one["folder"]) / name).touch()
    (hostile / "out").mkdir()
    links = [h for h in made(found, hostile / "out").attributes("href") if h.startswith("../")]
    assert len(links) > 20
    assert all((hostile / "out" / unquote(link)).exists() for link in links)


def test_a_campaign_without_runs_says_what_to_do() -> None:
    text = made(reports.nothing(runs())).text
    assert "Nothing has been measured yet." in text
    assert "No run has been made yet." in text and "gpudebug next" in text


def test_runs_that_were_left_out_are_named() -> None:
    skipped = [{"run": "0007-h2", "why": "evidence.json: is not JSON"}]
    found = made(reports.data(runs(), skipped=skipped))
    assert "1 run is left out" in found.text
    assert "0007-h2" in found.text and "evidence.json: is not JSON" in found.text


def test_what_is_unknown_is_never_a_number() -> None:
    bare = dict.fromkeys(
        ("window", "utilisation", "steps_per_s", "progress_per_s", "step_times", "duration_s")
    )
    lost = {"name": None, "trend": "UNKNOWN", "first": None, "last": None, "points": 0}
    found = reports.data(runs(), [reports.hypothesis(1, course=None)])
    for one in found["runs"].values():
        one.update(bare, spark=[], timeline=[], loss_points=[], loss=lost, outcome="CRASHED", files=[])
        one["failure"] = {"kind": "oom_gpu", "lines": []}
    found["gain"] = None
    read = made(found)
    assert not [e for e in read.having("div") if "data-plot" in e]
    assert "oom_gpu" in read.text and "unknown" in read.text and not re.search(r"(?<![0-9])0\.0%", read.text)


def test_a_stand_in_is_named_one() -> None:
    found = reports.data(runs())
    assert "No GPU was measured" not in made(found).text
    found["machine"]["devices"][0]["uuid"] = "CPU"
    assert "No GPU was measured" in made(found).text


def test_a_campaign_judged_by_another_metric() -> None:
    faster = reports.hypothesis(
        1, delta_pp=None, delta_ci=None, metric="steps_per_s", improvement=1.31, improvement_ci=[1.2, 1.4]
    )
    gain = reports.gain(metric="steps_per_s", unit="steps/s", start=6.1, now=8.0, target=None, reference=None)
    gain.update(accepted=[{**reports.accepted(1, 8.0), "before": 6.1}], gap=None, gap_text="unknown")
    found = reports.data(runs(), [faster], gain=gain)
    found["status"].update(metric="steps_per_s", target=None)
    text = made(found).text
    assert "6.1 steps/s" in text and "1.31x" in text


# The rest is seen by a real browser.


def test_the_card_of_what_is_not_accepted_yet_names_the_largest_effect() -> None:
    found = reports.data(runs(), [reports.hypothesis(1, delta_pp=21.0), reports.hypothesis(2)])
    found["status"] = reports.status(target=None)
    found["status"]["baselines"]["workload"]["throughput_text"] = "unknown"
    text = " ".join(made(found).text.split())
    assert "VALIDATED, not accepted +33.6pp hypothesis 2" in text
    assert "Workload at the start 30.0% gpu_util VALIDATED" in text
    assert "Target none target in gpudebug.yaml sets one" in text


def test_a_verdict_has_its_picture_in_words_too() -> None:
    one, older = reports.hypothesis(1), reports.hypothesis(2, course=None)
    read = made(reports.data(runs(), [one, older]))
    assert one["course"]["text"] in read.text
    assert [e["data-of"] for e in read.having("div") if e.get("data-plot") == "course"] == ["1"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def written(folder: Path, found: dict[str, Any]) -> Path:
    made = folder / "runs" / "report" / "report.html"
    made.parent.mkdir(parents=True)
    made.write_text(page(found, made.parent), "utf-8")
    return made


def shown(browser: Browser, of: str) -> str:
    """Opens a hypothesis and waits for its plots; its element's selector."""
    browser.run("document.querySelector(`#${arguments[0]} > summary`).click()", of)
    browser.run("document.getElementById(arguments[0]).scrollIntoView()", of)
    drawn = "[...document.querySelectorAll(`#${arguments[0]} .plot`)].every((p) => p.dataset.drawn)"
    for element in browser.run("return [...document.querySelectorAll(`#${arguments[0]} .plot`)]", of):
        browser.run("arguments[0].scrollIntoView({block: 'center'})", element)
        browser.wait("arguments[0].dataset.drawn", element)
    assert browser.run(f"return {drawn}", of)
    return f"#{of}"


def colours(png: bytes, wanted: tuple[int, int, int], near: int = 40) -> int:
    """How many pixels have about this colour."""
    from PIL import Image

    pixels = Image.open(io.BytesIO(png)).convert("RGB")
    counts = pixels.getcolors(pixels.width * pixels.height) or []
    return sum(n for n, c in counts if sum(abs(a - b) for a, b in zip(c, wanted, strict=True)) <= near)


def tone(browser: Browser, name: str) -> tuple[int, int, int]:
    r, g, b = browser.run("return colour(arguments[0]).match(/[0-9]+/g).slice(0, 3).map(Number)", name)
    return r, g, b


def drawn(browser: Browser, plot: str, *names: str) -> bool:
    """Whether a plot shows each of these colours; on a busy machine it is there before its curves are."""
    picture = browser.picture(plot)
    return all(colours(picture, tone(browser, name), 90) > 100 for name in names)


@slow
def test_a_page_draws_its_plots_and_asks_nobody(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, reports.data(tmp_path / "runs", [reports.hypothesis(1)])))
    of = shown(browser, "h1")
    for kind in ("course", "timeline", "loss", "steps"):
        browser.until(lambda kind=kind: drawn(browser, f"{of} [data-plot={kind}]", "accent", "before"))
    assert browser.complaints() == []
    assert browser.fetched() == []


@slow
def test_the_picture_of_a_verdict_names_its_runs(browser: Browser, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains

    browser.open(written(tmp_path, reports.data(tmp_path / "runs", [reports.hypothesis(1)])))
    plot = f"{shown(browser, 'h1')} [data-plot=course]"
    place = browser.driver.find_element("css selector", f"{plot} .nsewdrag")
    # Of four columns (three runs and the effect) the trial's is the second.
    for right, told in ((-0.15, "63.6, run 0004-h1"), (0.45, "63.6, effect +33.6pp")):
        where = int(right * place.size["width"])
        ActionChains(browser.driver, 50).move_to_element_with_offset(place, where, 5).pause(0.3).perform()
        layer = "document.querySelector(arguments[0] + ' .hoverlayer').textContent"
        browser.wait(f"{layer}.includes(arguments[1])", plot, told)
    assert browser.complaints() == []


@slow
def test_a_part_of_a_plot_is_zoomed_and_its_points_tell_of_themselves(
    browser: Browser, tmp_path: Path
) -> None:
    from selenium.webdriver import ActionChains

    browser.open(written(tmp_path, reports.data(tmp_path / "runs", [reports.hypothesis(1)])))
    plot = f"{shown(browser, 'h1')} [data-plot=timeline]"
    place = browser.driver.find_element("css selector", f"{plot} .nsewdrag")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", place)
    ActionChains(browser.driver, 50).move_to_element_with_offset(place, 20, 5).pause(0.3).perform()
    browser.wait("document.querySelector(arguments[0] + ' .hoverlayer text')", plot)
    said = browser.run("return document.querySelector(arguments[0] + ' .hoverlayer').textContent", plot)
    assert "31.0 s since launch" in said and "baseline 0002" in said and " MB" in said
    across = "return document.querySelector(arguments[0])._fullLayout.xaxis.range"
    before = browser.run(across, plot)
    drag = ActionChains(browser.driver, 50).move_to_element_with_offset(place, -150, 0).click_and_hold()
    drag.move_by_offset(120, 0).move_by_offset(60, 0).release().perform()
    browser.wait(
        f"JSON.stringify(({across.removeprefix('return ')})) !== arguments[1]", plot, _dumped(before)
    )
    after = browser.run(across, plot)
    assert before[0] < after[0] < after[1] < before[1]
    browser.run("setTheme('dark')")
    assert browser.run(across, plot) == after
    assert browser.complaints() == []


def _dumped(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


@slow
def test_hostile_words_are_shown_as_they_are(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, spoilt()))
    shown(browser, "h1")
    assert browser.run("return document.querySelector('h1').textContent") == SHOWN
    assert browser.run("return document.querySelector('#h1 h3 bdi').textContent") == SHOWN
    assert (
        browser.run(
            "return document.querySelectorAll('#h1 a[href^=javascript], .plot a[href], main img').length"
        )
        == 0
    )
    axis = browser.run("return document.querySelector('#h1 [data-plot=loss] .ytitle').textContent")
    assert axis.startswith('<a href="javascript:alert(3)"><script>alert(1)</script>') and "\u202e" not in axis
    # What stands beside a title keeps its place: the badge is at the right of it.
    right, left = browser.run(
        "const box = (s) => document.querySelector(s).getBoundingClientRect();"
        "return [box('#h1 h3 bdi').left, box('#h1 summary .badge').right]"
    )
    assert right < left
    assert browser.complaints() == [] and browser.fetched() == []


@slow
def test_dark_and_light_follow_the_system_until_told_otherwise(browser: Browser, tmp_path: Path) -> None:
    made = written(tmp_path, reports.data(tmp_path / "runs", [reports.hypothesis(1)]))
    look = "return getComputedStyle(document.body).backgroundColor"
    line = "return document.querySelector('#h1 .plot .js-line').style.stroke"
    browser.open(made)
    shown(browser, "h1")
    light, drawn = browser.run(look), browser.run(line)
    browser.open(made, dark=True)
    shown(browser, "h1")
    dark = browser.run(look)
    assert dark != light and browser.run(line) != drawn
    for _ in range(2):
        browser.driver.find_element("id", "theme").click()
        after = browser.run("return [document.documentElement.dataset.theme, arguments[0]]", None)
    assert after[0] == "dark"
    browser.driver.find_element("id", "theme").click()
    browser.scheme(dark=False)
    browser.wait("getComputedStyle(document.body).backgroundColor === arguments[0]", light)
    browser.wait("document.querySelector('#h1 .plot .js-line').style.stroke === arguments[0]", drawn)
    assert browser.complaints() == []


@slow
def test_the_keyboard_reaches_everything(browser: Browser, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    few = [reports.hypothesis(1), reports.untested(2)]
    browser.open(written(tmp_path, reports.data(tmp_path / "runs", few)))
    reached = []
    for _ in range(200):
        ActionChains(browser.driver, 10).send_keys(Keys.TAB).perform()
        where = browser.run(
            "const e = document.activeElement; return [e.tagName, e.className || e.id, e.parentElement?.id]"
        )
        reached.append(where)
        if where == ["SUMMARY", "", "h1"]:
            break
    assert reached[0][:2] == ["A", "skip"]
    assert ["BUTTON", "theme"] in [w[:2] for w in reached] and ["BUTTON", "download"] in [
        w[:2] for w in reached
    ]
    assert reached[-1] == ["SUMMARY", "", "h1"]
    outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    ActionChains(browser.driver, 10).send_keys(Keys.ENTER).perform()
    assert browser.wait("document.getElementById('h1').open")


@slow
def test_a_link_to_a_hypothesis_opens_it(browser: Browser, tmp_path: Path) -> None:
    made = written(tmp_path, reports.data(tmp_path / "runs", [reports.hypothesis(1), reports.untested(2)]))
    browser.open(made)
    browser.driver.find_element("css selector", "table.list a[href='#h1']").click()
    assert browser.wait("document.getElementById('h1').open")
    browser.driver.get(f"{made.as_uri()}#h2")
    assert browser.wait("document.getElementById('h2').open")
    browser.driver.get(f"{made.as_uri()}#%E0%A4%A")
    assert browser.complaints() == []


@slow
def test_a_screen_reader_meets_names(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, reports.data(tmp_path / "runs", [reports.hypothesis(1)])))
    shown(browser, "h1")
    found = browser.names()
    nameless = [
        role
        for role, name in found
        if role in ("button", "link", "image", "textbox", "searchbox", "combobox", "heading")
        and not name.strip()
    ]
    assert nameless == []
    roles = {role for role, _ in found}
    assert {"main", "navigation", "banner", "contentinfo", "region", "table", "columnheader"} <= roles
    assert ("group", "Loss, interactive plot; the table below has its figures") in found
    assert ("group", "The verdict, interactive plot; the text above has its figures") in found


@slow
def test_the_data_is_handed_out_as_a_file(browser: Browser, tmp_path: Path) -> None:
    built = reports.data(tmp_path / "runs", [reports.hypothesis(1)])
    browser.open(written(tmp_path, built))
    (tmp_path / "got").mkdir()
    browser.command(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path / "got")}
    )
    browser.driver.find_element("id", "download").click()
    wanted = tmp_path / "got" / "gpudebug-report.json"
    browser.until(wanted.is_file)
    assert json.loads(wanted.read_text("utf-8")) == built
    assert browser.complaints() == []


@slow
def test_a_thousand_hypotheses(browser: Browser, tmp_path: Path) -> None:
    made = written(tmp_path, reports.many(tmp_path / "runs", 1000))
    assert made.stat().st_size < 10 << 20
    browser.open(made)
    assert browser.run("return document.querySelectorAll('details.hypothesis').length") == 1000
    # Only what is seen is drawn.
    browser.wait("document.readyState === 'complete'")
    assert browser.run("return document.querySelectorAll('#hypotheses .plot[data-drawn]').length") == 0
    browser.driver.find_element("id", "find").send_keys("idea 777")
    assert browser.wait("document.querySelectorAll('table.list tbody tr:not([hidden])').length === 1")
    browser.driver.find_element("css selector", "table.list a[href='#h777']").click()
    assert browser.wait("document.getElementById('h777').open")
    assert browser.complaints() == []


@slow
def test_without_scripts_all_that_is_text_is_there(browser: Browser, tmp_path: Path) -> None:
    made = written(tmp_path, reports.data(tmp_path / "runs", [reports.hypothesis(1)]))
    browser.open(made, script=False)
    assert "GPU utilisation was 30.0%" in browser.driver.find_element("css selector", ".headline").text
    assert browser.driver.find_element("css selector", "svg.spark").is_displayed()
    for hidden in ("#theme", "#h1 .plot"):
        assert not browser.driver.find_element("css selector", hidden).is_displayed()
    browser.driver.find_element("css selector", "#h1 > summary").click()
    assert "delta" in browser.driver.find_element("css selector", "#h1 .body").text


@slow
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_stands_out_of_the_window(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.open(written(tmp_path, spoilt()), width=width, height=800)
    shown(browser, "h1")
    assert browser.run("return document.documentElement.scrollWidth") <= width


@slow
def test_many_devices_leave_a_narrow_plot_its_room(browser: Browser, tmp_path: Path) -> None:
    found = reports.data(tmp_path / "runs", [reports.hypothesis(1)])
    for run in found["runs"].values():
        run["timeline"] = [{**run["timeline"][0], "index": i, "uuid": f"GPU-{i}"} for i in range(8)]
    browser.open(written(tmp_path, found), width=390)
    of = shown(browser, "h1")
    room = "return document.querySelector(`${arguments[0]} [data-plot=timeline]`)._fullLayout._size.h"
    assert browser.run(room, of) > 100


@slow
def test_before_the_first_run_there_is_a_page(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, reports.nothing(tmp_path / "runs")))
    assert "Nothing has been measured yet." in browser.driver.find_element("css selector", ".headline").text
    assert browser.complaints() == [] and browser.fetched() == []
