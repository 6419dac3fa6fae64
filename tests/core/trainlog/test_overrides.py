"""Lines by which programs say that they override a setting."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog import overrides

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
