"""Values of the catalogue's files as a command line has them."""

from __future__ import annotations

import pytest

from gpudebug.core.catalogue.model import CatalogueIntervention
from gpudebug.core.catalogue.settings import text_of, written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (4.0, "4"),
        (4, "4"),
        (0.5, "0.5"),
        (1e-3, "0.001"),
        (1e20, "1e+20"),
        ("a b", "a b"),
    ],
)
def test_values_are_written_as_a_person_would(value: str | float | bool, text: str) -> None:
    assert written(value) == text


@pytest.mark.parametrize(
    ("intervention", "text"),
    [
        (CatalogueIntervention(set={"num_workers": 4.0}), "--set num_workers=4"),
        (CatalogueIntervention(set={"a": True}, unset=("b",)), "--compound --set a=true --unset b"),
        (CatalogueIntervention(env={"OMP_NUM_THREADS": "1"}), "--env OMP_NUM_THREADS=1"),
        (CatalogueIntervention(code="write it"), None),
    ],
)
def test_a_change_in_the_syntax_of_propose(intervention: CatalogueIntervention, text: str | None) -> None:
    assert text_of(intervention) == text
