"""What a trial may be judged by."""

from __future__ import annotations

import pytest

from gpudebug.core.verdict.gates.setting import TrialSetting


@pytest.mark.parametrize(
    ("setting", "explained"),
    [
        (TrialSetting(), False),
        (TrialSetting(knob="n_envs"), True),
        (TrialSetting(knob="n_envs", code=True), False),
        (TrialSetting(knob="n_envs", code=True, settings_alone=True), True),
        (TrialSetting(code=True, settings_alone=True), False),
    ],
)
def test_a_named_knob_explains_another_step_and_code_does_not(setting: TrialSetting, explained: bool) -> None:
    assert setting.explained is explained
