"""`gpudebug report` of ten runs of 100,000 samples each: how large its page is, and how soon it is open.

Real recordings played fast, the real command, a real browser; beside it the same campaign with short runs,
so that what the plots' own script takes is in both.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

from tests.bench.table import Row
from tests.support.browser import Browser, chromium
from tests.support.campaigns import Campaign, make_replay_campaign, record

SAMPLES = 100_000
SHORT = 100
INTERVAL_S = 0.2
HYPOTHESES = 4
RUNS = 2
"""Of the baseline and of each hypothesis: ten together."""
PLAYED_S = 6.0
OPENINGS = 5
MAX_MB = 10.0
MAX_RATIO = 2.0
_DRAWN = "return document.querySelector('[data-drawn]') !== null"


def rows() -> Iterator[Row]:
    """The page's size against its bound; how long it takes to be written and opened."""
    with tempfile.TemporaryDirectory(prefix="gpudebug-bench-") as name:
        folder = Path(name)
        pages = {count: _written(folder / str(count), count) for count in (SAMPLES, SHORT)}
        long, took = pages[SAMPLES]
        yield Row("report, page of 10 runs of 100,000 samples", long.stat().st_size / 1e6, MAX_MB, "MB")
        yield Row("report, written", took, inf, "s")
        with chromium(folder / "profile") as browser:
            opened = {count: _opened(browser, page) for count, (page, _) in pages.items()}
        yield Row("report, opened to the first plot drawn", opened[SAMPLES], inf, "s")
        yield Row("report, opened, over one of short runs", opened[SAMPLES] / opened[SHORT], MAX_RATIO, "x")


def _written(folder: Path, samples: int) -> tuple[Path, float]:
    """The page of a campaign with runs of so many samples, and the seconds that writing it took."""
    campaign = _campaign(folder, samples)
    began = time.perf_counter()
    page = campaign.json("report", timeout=600)["page"]
    return Path(page), time.perf_counter() - began


def _campaign(folder: Path, samples: int) -> Campaign:
    seconds = samples * INTERVAL_S
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, seconds=seconds)
    for number in range(1, HYPOTHESES + 1):
        record(recordings, f"{number + 1:04}-h{number}", util=20 + 10 * number, rate=20, seconds=seconds)
    speed = max(10.0, seconds / PLAYED_S)
    campaign = make_replay_campaign(folder / "repo", recordings, speed=speed, max_runs=RUNS)
    campaign.config.write_text(campaign.config.read_text().replace("timeout: 60s", "timeout: 24h"))
    for number in range(HYPOTHESES):
        campaign.propose(f"--set --work=0.{number + 3}", title=f"Change {number + 1}")
    for _ in range(HYPOTHESES + 1):
        campaign.run("next", timeout=600).expect(0)
    return campaign


def _opened(browser: Browser, page: Path) -> float:
    """Seconds from the request for a hypothesis to its first plot, the median of some openings."""
    took = []
    for _ in range(OPENINGS):
        browser.driver.get("about:blank")
        began = time.perf_counter()
        browser.driver.get(f"{page.as_uri()}#h1")
        browser.until(lambda: browser.run(_DRAWN))
        took.append(time.perf_counter() - began)
    return statistics.median(took)
