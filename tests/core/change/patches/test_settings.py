"""A patch of nothing but settings."""

from __future__ import annotations

import pytest

from gpudebug.core.change.patches.hunks import read
from gpudebug.core.change.patches.settings import settings_of


def patch(path: str, *lines: str) -> bytes:
    old = sum(line[0] in "- " for line in lines)
    new = sum(line[0] in "+ " for line in lines)
    body = "".join(f"{line}\n" for line in lines)
    return f"--- a/{path}\n+++ b/{path}\n@@ -1,{old} +1,{new} @@\n{body}".encode()


@pytest.mark.parametrize(
    ("path", "lines", "names"),
    [
        ("ppo.yml", ("-  n_envs: 1", "+  n_envs: 8"), ("n_envs",)),
        ("a/ppo.toml", (" x = 1", "-n_envs = 1", "+n_envs = 8", "+n_steps = 32"), ("n_envs", "n_steps")),
        ("ppo.json", ('-  "n_envs": 1,', '+  "n_envs": 8,'), ("n_envs",)),
        ("ppo.yaml", ("-# one", "+# eight", "-n_envs: 1", "+n_envs: 8"), ("n_envs",)),
        ("ppo.yaml", ("-  - 1", "+  - 8"), None),
        ("train.py", ("-n_envs = 1", "+n_envs = 8"), None),
    ],
)
def test_the_settings_of_a_patch(path: str, lines: tuple[str, ...], names: tuple[str, ...] | None) -> None:
    assert settings_of(read(patch(path, *lines), "x.patch")) == names


def test_a_patch_that_also_changes_code_is_none_of_settings() -> None:
    both = patch("a.yaml", "-n_envs: 1", "+n_envs: 8") + patch("b.py", "-n = 1", "+n = 2")
    assert settings_of(read(both, "x.patch")) is None
