from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpudebug.core.errors import GpudebugError
from gpudebug.edges import plotly


def test_the_script_is_found_without_its_package_being_loaded() -> None:
    code = (
        "import sys; from gpudebug.edges import plotly; found = plotly.script()\n"
        "print(len(found.text) > 1_000_000, 'plotly' in sys.modules, 'Plotly' in found.text)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["True", "False", "True"]


def test_it_can_stand_in_a_page() -> None:
    found = plotly.script()
    assert "</script" not in found.text.lower() and "<!--" not in found.text and "\r" not in found.text
    # The elements that the script looks for before it adds style sheets of its own.
    assert found.styles in found.text or "plotly.js-style-" in found.text
    assert all(id in found.text for id in found.guards)


def test_what_would_end_the_script_is_made_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(
        tmp_path, monkeypatch, b"a = '</SCRIPT><!--';\r\nb = document.getElementById(\"" + b"0" * 64 + b'");'
    )
    found = plotly.script()
    assert found.text == "a = '<\\/SCRIPT><\\!--';\nb = document.getElementById(\"" + "0" * 64 + '");'
    assert found.guards == ("0" * 64,)


def test_a_package_without_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(tmp_path, monkeypatch, None)
    with pytest.raises(GpudebugError, match=r"lacks the script.*pip install") as e:
        plotly.script()
    assert e.value.file == str(tmp_path / "plotly/package_data/plotly.min.js")


def test_no_package_at_all() -> None:
    code = (
        "import sys; import gpudebug.edges.plotly as p\n"
        "sys.path = [f for f in sys.path if 'site-packages' not in f]\n"
        "try:\n    p.script()\nexcept p.GpudebugError as e:\n    print(e)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "plotly, which is not installed; next: pip install" in said.stdout


def _package(folder: Path, monkeypatch: pytest.MonkeyPatch, script: bytes | None) -> None:
    (folder / "plotly/package_data").mkdir(parents=True)
    (folder / "plotly/__init__.py").touch()
    if script is not None:
        (folder / "plotly/package_data/plotly.min.js").write_bytes(script)
    monkeypatch.syspath_prepend(str(folder))
