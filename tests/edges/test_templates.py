from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jinja2 import UndefinedError

from gpudebug.core.errors import GpudebugError
from gpudebug.edges import templates
from gpudebug.edges.templates import render

BASELINE: dict[str, Any] = {
    "role": "workload",
    "command": "lerobot-train --steps=200",
    "gpu_util": "27.4% (95% CI 26.1 to 28.6, 4 runs)",
    "throughput": "6.1 steps/s",
    "training": "SUCCESS",
    "loss": "CONVERGING",
    "runs": ["0001-baseline-workload", "0002-baseline-workload"],
}
HYPOTHESIS: dict[str, Any] = {
    "number": 1,
    "title": "Unused image frames are copied to the GPU",
    "description": "Two frames are loaded.",
    "test_method": "Load one.",
    "cause": "dl-redundant-frames",
    "intervention": "--set --dataset.frames=1",
    "status": "UNTESTED",
}
RESULT: dict[str, Any] = {
    "gpu_util_before": "27.4%",
    "gpu_util_after": "61.0%",
    "improvement": "+33.6pp (95% CI +31.2 to +36.0)",
    "training": "SUCCESS",
    "loss": "CONVERGING",
    "throughput": "6.1 to 13.4 steps/s",
    "notes": "as predicted",
    "runs": ["0005-h1"],
}


def test_the_head_of_a_file() -> None:
    assert render("progress.md.j2", campaign="act", goal="Mend\nthe loader.") == (
        "# GPU utilization debugging: act\n\nGoal: Mend the loader.\n\n## Baselines\n\n## Hypotheses\n"
    )


def test_a_baseline() -> None:
    assert render("baseline.md.j2", **BASELINE) == (
        "### Baseline: workload\n"
        "- **Command**: `lerobot-train --steps=200`\n"
        "- **GPU util**: 27.4% (95% CI 26.1 to 28.6, 4 runs)\n"
        "- **Throughput**: 6.1 steps/s\n"
        "- **Training**: SUCCESS\n"
        "- **Loss**: CONVERGING\n"
        "- **Runs**: runs/0001-baseline-workload, runs/0002-baseline-workload\n"
    )


def test_a_hypothesis_with_and_without_cause_and_intervention() -> None:
    text = (
        "### Hypothesis 1: Unused image frames are copied to the GPU\n"
        "- **Description**: Two frames are loaded.\n"
        "- **Test Method**: Load one.\n"
        "- **Cause**: dl-redundant-frames\n"
        "- **Intervention**: --set --dataset.frames=1\n"
        "- **Status**: UNTESTED\n"
    )
    assert render("hypothesis.md.j2", **HYPOTHESIS) == text
    for name in ("cause", "intervention"):
        without = "".join(line for line in text.splitlines(keepends=True) if name.title() not in line)
        assert render("hypothesis.md.j2", **{**HYPOTHESIS, name: None}) == without


def test_a_result_with_and_without_notes() -> None:
    text = (
        "- **Result**:\n"
        "  - GPU util before: 27.4%\n"
        "  - GPU util after: 61.0%\n"
        "  - Improvement: +33.6pp (95% CI +31.2 to +36.0)\n"
        "  - Training: SUCCESS\n"
        "  - Loss: CONVERGING\n"
        "  - Throughput: 6.1 to 13.4 steps/s\n"
        "  - Notes: as predicted\n"
        "  - Runs: runs/0005-h1\n"
    )
    assert render("result.md.j2", **RESULT) == text
    assert render("result.md.j2", **{**RESULT, "notes": ""}) == text.replace("  - Notes: as predicted\n", "")


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("a 'b  c' \"d\" <e> & {{ f }}", "`a 'b  c' \"d\" <e> & {{ f }}`"),
        ("echo `date`", "`` echo `date` ``"),
        ("a ``b`` c", "```a ``b`` c```"),
        ("a \\\n    --b\n", "`a \\ --b`"),
    ],
)
def test_a_command_is_written_as_it_is(command: str, written: str) -> None:
    made = render("baseline.md.j2", **{**BASELINE, "command": command})
    assert made.splitlines()[1] == f"- **Command**: {written}"


@pytest.mark.parametrize("breaks", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\n\n\n"])
def test_no_value_can_begin_a_line(breaks: str) -> None:
    for name, values in (
        ("baseline.md.j2", BASELINE),
        ("hypothesis.md.j2", HYPOTHESIS),
        ("result.md.j2", RESULT),
    ):
        lines = render(name, **values).splitlines()
        for key, value in values.items():
            if isinstance(value, str) and key != "status":
                hostile = render(name, **{**values, key: f"{value}{breaks}### Hypothesis 2: B"})
                assert len(hostile.splitlines()) == len(lines)


@pytest.mark.parametrize(
    ("name", "values"),
    [("baseline.md.j2", BASELINE), ("hypothesis.md.j2", HYPOTHESIS), ("result.md.j2", RESULT)],
)
def test_a_value_that_is_missing_is_an_error_and_never_blank(name: str, values: dict[str, Any]) -> None:
    for key in values:
        with pytest.raises(UndefinedError):
            render(name, **{other: value for other, value in values.items() if other != key})


def test_the_module_pays_for_jinja_on_the_first_rendering_only() -> None:
    code = (
        "import sys; from gpudebug.edges import templates\n"
        "before = 'jinja2' in sys.modules; templates.render('progress.md.j2', campaign='a', goal='b')\n"
        "sys.exit(0 if (before, 'jinja2' in sys.modules) == (False, True) else 1)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("once", [True, False])
def test_a_metric_that_is_a_throughput_is_exported_once(once: bool) -> None:
    rate = "1 to 2 steps/s: 2.00x"
    worth = {"delta": 2.0, "text": "steps_per_s 1 to 2: 2.00x", "throughput": rate, "notes": []}
    row = {"number": 1, "title": "A", "intervention": "--set --x=1", "improvement": "2.00x", "patch": None}
    text = render(
        "export.md.j2",
        heading="# Accepted changes of campaign",
        campaign="c",
        combined=worth,
        once=once,
        runs_before="1 run (runs/0001-a)",
        runs_after="1 run (runs/0002-a)",
        replayed=None,
        doubts=[],
        hypotheses=[{**row, "throughput": rate}],
        patches=[],
        variables=[],
        command="python train.py",
        folder=".",
    )
    assert text.count("2.00x") == (2 if once else 4)
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} == ({6} if once else {7})


def test_the_script_is_found_without_its_package_being_loaded() -> None:
    code = (
        "import sys; from gpudebug.edges import templates; found = templates.script()\n"
        "print(len(found.text) > 1_000_000, 'plotly' in sys.modules, 'Plotly' in found.text)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["True", "False", "True"]


def test_it_can_stand_in_a_page() -> None:
    found = templates.script()
    assert "</script" not in found.text.lower() and "<!--" not in found.text and "\r" not in found.text
    # The elements that the script looks for before it adds style sheets of its own.
    assert found.styles in found.text or "plotly.js-style-" in found.text
    assert all(id in found.text for id in found.guards)


def test_what_would_end_the_script_is_made_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(
        tmp_path, monkeypatch, b"a = '</SCRIPT><!--';\r\nb = document.getElementById(\"" + b"0" * 64 + b'");'
    )
    found = templates.script()
    assert found.text == "a = '<\\/SCRIPT><\\!--';\nb = document.getElementById(\"" + "0" * 64 + '");'
    assert found.guards == ("0" * 64,)


def test_a_package_without_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(tmp_path, monkeypatch, None)
    with pytest.raises(GpudebugError, match=r"lacks the script.*pip install") as e:
        templates.script()
    assert e.value.file == str(tmp_path / "plotly/package_data/plotly.min.js")


def test_no_package_at_all() -> None:
    code = (
        "import sys; import gpudebug.edges.templates as p\n"
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
