"""docs/reference is what the product's own tables write."""

from __future__ import annotations

import inspect

import pytest
from tests.support import reference

from gpudebug.core import errors
from gpudebug.engine.cycle import next as cycle
from gpudebug.terminal import output


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_page_is_as_its_source_writes_it(name: str) -> None:
    written = (reference.FOLDER / name).read_text("utf-8")
    assert written == reference.PAGES[name](), "run: python -m tests.support.reference"


def test_every_exit_status_is_listed() -> None:
    own = [e for e in vars(errors).values() if inspect.isclass(e) and issubclass(e, errors.GpudebugError)]
    used = {e.exit_code for e in own} | {output.DEFECT, output.INTERRUPTED}
    used |= {cycle.STOPPED, cycle.YOUR_TURN, cycle.SESSION_DONE}
    listed = set(reference.exit_statuses().partition("`gpudebug verify`")[0].split("| "))
    assert {str(status) for status in used} <= {cell.strip() for cell in listed}
