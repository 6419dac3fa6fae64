from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from gpudebug.core.lazy import loader, regex

HOMES = {"splice": "next_number", "gpudebug.core.words": "Status counted"}


def test_a_name_is_loaded_from_its_home_when_it_is_asked_for() -> None:
    code = (
        "import json, sys\n"
        "from gpudebug.core.lazy import loader\n"
        f"load = loader('gpudebug.core.progress', {HOMES!r})\n"
        "before = 'gpudebug.core.words' in sys.modules\n"
        "print(json.dumps([before, load('counted')(1, 'run'), 'gpudebug.core.words' in sys.modules]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == [False, "1 run", True]


def test_a_module_is_one_of_its_names_and_no_other_is_there() -> None:
    load = loader("gpudebug.core.progress", {"splice": "next_number"})
    assert load("splice").__name__ == "gpudebug.core.progress.splice"
    assert load("next_number") is load("splice").next_number
    with pytest.raises(AttributeError, match=r"'gpudebug\.core\.progress' has no attribute 'stages'"):
        load("stages")


def test_an_expression_is_compiled_at_its_first_use() -> None:
    broken, sound = regex("("), regex(rb"(?P<n>\d)", re.IGNORECASE)
    assert [m["n"] for m in sound.finditer(b"a1 b2")] == [b"1", b"2"]
    assert sound.pattern == rb"(?P<n>\d)" and sound.flags & re.IGNORECASE and sound.groupindex == {"n": 1}
    with pytest.raises(re.error):
        broken.search("")
