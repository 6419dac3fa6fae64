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
        (TrialSetting(knob="n_envs", code=True, settings_alone=True, rule=4), False),
        (TrialSetting(code=True, settings_alone=True), False),
    ],
)
def test_a_named_knob_explains_another_step_and_code_does_not(setting: TrialSetting, explained: bool) -> None:
    assert setting.explained is explained


def test_each_rule_counts_what_it_did() -> None:
    found = [(TrialSetting(rule=rule).counted, TrialSetting(rule=rule).loads) for rule in (3, 4, 5)]
    assert found == [(False, False), (True, False), (True, True)]
