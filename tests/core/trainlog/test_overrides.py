"""Lines by which programs say that they override a setting."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog import overrides
from gpudebug.core.trainlog.overrides import Form, SettingBlock, Settings, combined, resolve

LINES = {
    "Overriding: eval_interval = 10000": {"eval_interval": "10000"},
    "Overriding timesteps: 100 -> 2000": {"timesteps": "2000"},
    "Overriding model.yaml nc=80 with nc=10": {"nc": "10"},
    "Overwriting n_timesteps with n=5000": {"n_timesteps": "5000"},
    "Overriding batch_size with 3": {"batch_size": "3"},
    "Overriding 'lr' from 0.1 to 0.01.": {"lr": "0.01"},
    "2025-01-01 INFO Override: max_total_runs = 4": {"max_total_runs": "4"},
    "INFO:root:Override config batch_size with command line argument: 16": {"batch_size": "16"},
    "overrides: ['trainer.max_steps=5', '+seed=1']": {"trainer.max_steps": "5", "seed": "1"},
    "CLI override: lr=3": {"lr": "3"},
    "lr: 0.1 -> 0.2 (overridden)": {"lr": "0.2"},
    "lr = 0.1  # overridden by the command line": {"lr": "0.1"},
    "workers: 4 (from command line)": {"workers": "4"},
    "Not overriding workers: 4": {},
    "Ignoring override workers = 4": {},
    "Failed to override: workers = 4": {},
    "Cannot override workers = 4: it is read-only": {},
    "workers: 4 (overridden by config: 2)": {},
    "workers: 4 (overridden by a command line argument)": {"workers": "4"},
    "Default hyperparameters (ones being tuned will be overridden):": {},
    "overriding dropout rate to 0.1": {},
    "overwrite: true": {},
    "override: true": {},
    "Loading from command line": {},
    "Overriding config with config/train.py:": {},
}


@pytest.mark.parametrize(("line", "expected"), LINES.items(), ids=LINES)
def test_what_a_line_overrides(line: str, expected: dict[str, str]) -> None:
    assert dict(overrides.of_line(line)) == expected


def test_a_file_whose_settings_follow_overrides_them() -> None:
    assert overrides.is_header("Overriding config with config/train.py:")
    assert not overrides.is_header("Loading config config/train.py:")


def block(form: Form, **values: str) -> SettingBlock:
    return SettingBlock(form, {name: [value] for name, value in values.items()})


def test_what_is_said_twice_alike_is_no_contradiction() -> None:
    twice = [block(Form.LINES, lr="0.1"), block(Form.STRUCTURE, lr="1e-1")]
    assert resolve(twice) == Settings({"lr": "0.1"})


def test_a_list_of_the_same_name_is_not_a_later_word() -> None:
    assert resolve([SettingBlock(Form.LINES, {"name": ["a", "b"]})]) == Settings({}, {"name": ("a", "b")})


def test_a_default_is_never_the_last_word() -> None:
    for form in (Form.LINES, Form.STRUCTURE, Form.OVERRIDE):
        given = [block(form, lr="0.1"), block(Form.DEFAULTS, lr="0.2")]
        assert resolve(given) == resolve(given[::-1]) == Settings({"lr": "0.1"})
    assert resolve([block(Form.DEFAULTS, lr="0.2")]) == Settings({"lr": "0.2"})


def test_two_files_that_differ_leave_a_setting_unknown() -> None:
    found = combined(Settings({"a": "1", "b": "2"}), Settings({"a": "1.0", "b": "3"}), Settings({"b": "3"}))
    assert found == Settings({"a": "1"}, {"b": ("2", "3")})


def test_a_file_that_agrees_with_the_last_word_leaves_it() -> None:
    printed = resolve([block(Form.LINES, a="1", b="2"), block(Form.STRUCTURE, a="3", b="2")])
    assert printed == Settings({"a": "3", "b": "2"}, {"a": ("1", "3")})
    assert combined(printed, Settings({"a": "3"})) == printed
    assert combined(printed, Settings({"a": "1"})).known == {"b": "2"}
