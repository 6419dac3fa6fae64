"""How a file's places are named, and the word that was meant."""

from __future__ import annotations

from gpudebug.core.yaml.problem import named, nearest


def test_places_and_names_as_a_person_says_them() -> None:
    assert named(("signature", 1, "weight")) == "signature 2.weight"
    assert nearest("datawait_share", ["data_wait_share", "gpu_util"]) == "data_wait_share"
    assert nearest("zzz", ["gpu_util"]) is None
