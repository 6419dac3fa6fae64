"""Names that lead to secrets, in every spelling, and names that are only like them."""

from __future__ import annotations

import pytest

from gpudebug.core.redaction.redact import sensitive_flag

SECRET = (
    *(
        "db_pass",
        "smtp-pass",
        "ssh.pass",
        "sshpass",
        "ldappass",
        "pass",
        "api_keys",
        "accessKeys",
        "hf-tokens",
    ),
    *("jwt", "user.jwt", "sentry_dsn", "connection_string", "conn_str", "connectionstring", "slack_webhook"),
    *(
        "slack_webhook_url",
        "passwords",
        "secrets",
        "netrc",
        "private_keys",
        "signing-keys",
        "token_2",
    ),
)
HARMLESS = (
    *("bypass", "compass", "forward_pass", "backward_pass", "num_pass", "passes", "passed", "n_keys", "keys"),
    *("tokens", "num_tokens", "max_new_tokens", "past_keys", "jwts", "dsnet", "connection", "connections"),
    *(
        "string",
        "webhooks_sent",
        "tokenizer",
        "authors",
        "monkey",
        "turkey",
        "keyframe",
        "low_pass",
        "first.pass",
    ),
)


@pytest.mark.parametrize("name", SECRET)
def test_names_of_secrets(name: str) -> None:
    assert sensitive_flag(name)
    assert sensitive_flag(f"--{name}")
    assert sensitive_flag(name.upper())


@pytest.mark.parametrize("name", HARMLESS)
def test_names_that_are_only_like_them(name: str) -> None:
    assert not sensitive_flag(name)
