"""`gpudebug analyze` of a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.errors import GpudebugError
from gpudebug.engine.run.trace_file import trace


def test_what_is_no_trace_says_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text('{"some": "JSON"}')
    with pytest.raises(GpudebugError) as told:
        trace(tmp_path / "trace.json")
    assert told.value.file == str(tmp_path / "trace.json")
    assert told.value.next
