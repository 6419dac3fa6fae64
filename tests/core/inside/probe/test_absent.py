"""Why nothing was told, as far as command and record say."""

from __future__ import annotations

import pytest
from tests.support.probe_lines import line, start

from gpudebug.core.inside.probe.absent import BY_SCRIPT, NEVER_ASKED, NOBODY, REPLACED, SWITCHED_OFF, reason
from gpudebug.core.inside.probe.processes import read_probe

COMMANDS = {
    "python train.py": NOBODY,
    "torchrun --nproc-per-node=2 train.py": NOBODY,
    "python train.py -I": NOBODY,
    "python -m train -S": NOBODY,
    "python -c pass -I": NOBODY,
    "python -u -W ignore train.py": NOBODY,
    "python -X importtime -Wignore train.py -E": NOBODY,
    "PYTHONPATH=src:$PYTHONPATH python train.py": NOBODY,
    "python": NOBODY,
    "": NOBODY,
    "python -I train.py": "`python -I` keeps the probe out: it ignores PYTHONPATH",
    "/opt/venv/bin/python3.11 -E train.py": "`python3.11 -E` keeps the probe out: it ignores PYTHONPATH",
    "python3 -S train.py": "`python3 -S` keeps the probe out: it does not run sitecustomize",
    "python -uIm train": "`python -I` keeps the probe out: it ignores PYTHONPATH",
    "python -X utf8 -S train.py": "`python -S` keeps the probe out: it does not run sitecustomize",
    "env PYTHONPATH=src python train.py": REPLACED,
    "cd x && PYTHONPATH= python -u train.py": REPLACED,
    "env A=1 python -I train.py": "`python -I` keeps the probe out: it ignores PYTHONPATH",
}


@pytest.mark.parametrize(("command", "why"), COMMANDS.items(), ids=COMMANDS)
def test_the_options_of_python_that_keep_it_out(command: str, why: str) -> None:
    assert reason(command.split(), True, None) == why
    assert reason(["sh", "-c", command], True, None) == (BY_SCRIPT if why == NOBODY else why)


@pytest.mark.parametrize(
    "command", ["bash run.sh", "./train.sh --steps=3", "/bin/sh train.sh -I", "make train"]
)
def test_a_script_may_keep_it_out(command: str) -> None:
    assert reason(command.split(), True, None) == BY_SCRIPT


def test_nobody_asked_for_it() -> None:
    assert reason(["python", "-I", "train.py"], False, None) == SWITCHED_OFF
    assert reason(["python", "-I", "train.py"], None, None) == NEVER_ASKED


def test_the_record_itself_says_why() -> None:
    argv = ["python", "train.py"]
    assert "version 2; this gpudebug reads version 1" in reason(argv, True, read_probe(start(version=2)))
    off = read_probe(line("off", 1, 3, why="OSError: full"))
    assert reason(argv, True, off) == "the probe switched itself off: OSError: full"
