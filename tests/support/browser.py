"""A real Chromium, driven by its own driver; neither is ever downloaded."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_BOX = """
const box = document.querySelector(arguments[0]).getBoundingClientRect();
return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height};
"""
_LOCAL = ("file:", "data:", "blob:", "about:")


class Browser:
    """One window of Chromium; `driver` is selenium's."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(
        self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False, script: bool = True
    ) -> None:
        """Loads a file, with what was logged before forgotten; without `script` none of its scripts runs."""
        self.command("Emulation.setScriptExecutionDisabled", {"value": not script})
        self.command("Emulation.setDeviceMetricsOverride", _metrics(width, height))
        self.scheme(dark)
        self.driver.get("about:blank")
        self.log("browser")
        self.log("performance")
        self.driver.get(page.as_uri())

    def scheme(self, dark: bool) -> None:
        """What the system prefers."""
        self.command("Emulation.setEmulatedMedia", _media("dark" if dark else "light"))

    def command(self, name: str, parameters: dict[str, Any] | None = None) -> Any:
        """A command of the protocol of Chromium's own tools."""
        return self.driver.execute_cdp_cmd(name, parameters or {})

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What was logged since the last look: `browser` is the console, `performance` all events."""
        return list(self.driver.get_log(kind))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console: violations of the page's policy are among them."""
        return [e["message"] for e in self.log("browser") if e["level"] in ("SEVERE", "WARNING")]

    def fetched(self) -> list[str]:
        """Addresses that the page asked for since the last look, its own and what it holds itself apart."""
        events = [json.loads(e["message"])["message"] for e in self.log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        assert asked, "the log of the network is empty: it proves nothing"
        return [url for url in asked if not url.startswith(_LOCAL)]

    def wait(self, script: str, *arguments: Any) -> Any:
        """Until the expression is true."""
        return self.until(lambda: self.run(f"return {script}", *arguments))

    def until(self, condition: Callable[[], Any]) -> Any:
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, 30, 0.05).until(lambda _: condition())

    def picture(self, selector: str | None = None) -> bytes:
        """PNG of what is seen, or of one element, seen or not."""
        wanted: dict[str, Any] = {"format": "png"}
        if selector is not None:
            box = self.run(_BOX, selector)
            wanted |= {"captureBeyondViewport": True, "clip": {**box, "scale": 1}}
        return base64.b64decode(self.command("Page.captureScreenshot", wanted)["data"])

    def names(self) -> list[tuple[str, str]]:
        """Role and name of every node of the accessibility tree that a screen reader meets."""
        nodes = self.command("Accessibility.getFullAXTree")["nodes"]
        return [
            (n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")
        ]


def _metrics(width: int, height: int) -> dict[str, Any]:
    return {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}


def _media(scheme: str) -> dict[str, Any]:
    """What glides is nowhere when it is clicked: so nothing does."""
    wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    return {"features": [{"name": name, "value": value} for name, value in wanted.items()]}


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A new browser with a new profile. Skips the test where it cannot be had, but never in CI."""
    paths = [shutil.which(name) for name in ("chromium", "chromedriver")]
    try:
        from selenium import webdriver
    except ImportError:
        _without("selenium is not installed")
    if None in paths:
        _without("chromium or chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = str(paths[0])
    for flag in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
        *("--no-first-run", "--disable-sync", "--disable-component-update", "--disable-dev-shm-usage"),
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Its processes come and go between tests, which are to take none of them for one of their own.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GPUDEBUG_")}
    driver = webdriver.Chrome(options, webdriver.ChromeService(str(paths[1]), env=own))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


def _without(why: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{why}: CI must look at the page")
    pytest.skip(why)
