"""Secrets go, everything else stays, and no text makes it slow."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.redaction.redact import REDACTED, Redactor, sensitive_flag, sensitive_variable

SECRET = "s3cr3tvalue0123456789abcdef"
SIZE = 2**18


@pytest.mark.parametrize(
    "name",
    [
        "--wandb.api_key",
        "--hf_token",
        "--password",
        "--token",
        "-token",
        "--use_auth_token",
        "--hub_token",
        "--auth",
        "--secret",
        "--credentials",
        "+wandb.key",
        "--api-key",
        "apiKey",
        "accessToken",
        "--key",
        "--db_pwd",
    ],
)
def test_flags_whose_values_are_secret(name: str) -> None:
    assert sensitive_flag(name)


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "WANDB_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "GITHUB_TOKEN",
        "MY_KEY",
        "KEY",
        "DB_PASSWORD",
        "PGPASSWORD",
        "OPENAI_API_KEY_2",
        "SECRET_OF_MINE",
        "HTTP_AUTH",
        "MYSQL_PASSWD",
        "APP_CREDENTIALS",
    ],
)
def test_variables_whose_values_are_secret(name: str) -> None:
    assert sensitive_variable(name)


@pytest.mark.parametrize(
    "name",
    [
        "TOKENIZERS_PARALLELISM",
        "--max_tokens",
        "--max_token",
        "--tokenizer",
        "--tokenizer_name",
        "KEYBOARD",
        "PWD",
        "OLDPWD",
        "PATH",
        "--pad_token",
        "--eos-token",
        "author",
        "monkey",
        "SSH_AUTH_SOCK",
        "--dataset.image_key",
        "--key_frames",
        "num_keys",
        "PASSWORD_FILE",
        "XAUTHORITY",
        "HOSTNAME",
        "--bypass",
        "--sort-key",
        "PYTHONPATH",
    ],
)
def test_names_that_only_look_like_it(name: str) -> None:
    assert not sensitive_variable(name)
    assert not sensitive_flag(name)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"t --wandb.api_key={SECRET} --x=1", f"t --wandb.api_key={REDACTED} --x=1"),
        (f"t --token {SECRET} --x 1", f"t --token {REDACTED} --x 1"),
        (f"t --password='{SECRET} and more' --x", f"t --password='{REDACTED}' --x"),
        (f'{{"api_key": "{SECRET}", "lr": 1}}', f'{{"api_key": "{REDACTED}", "lr": 1}}'),
        (f'"{{\\"api_key\\": \\"{SECRET}\\"}}"', f'"{{\\"api_key\\": \\"{REDACTED}\\"}}"'),
        (f"Authorization: Bearer {SECRET}", f"Authorization: Bearer {REDACTED}"),
        (f"https://user:{SECRET}@host/x", f"https://user:{REDACTED}@host/x"),
        (f"https://h/x?token={SECRET}&a=1", f"https://h/x?token={REDACTED}&a=1"),
        (f"https://h/x?key={SECRET}&a=1", f"https://h/x?key={REDACTED}&a=1"),
        (f"export HF_TOKEN={SECRET}; t", f"export HF_TOKEN={REDACTED}; t"),
        (f"HF_TOKEN: {SECRET}\nnext", f"HF_TOKEN: {REDACTED}\nnext"),
        (f"API_KEYS: {SECRET},qwertz98765\nnext", f"API_KEYS: {REDACTED}\nnext"),
        (f"keys=2,HF_TOKENS={SECRET},qwertz98765,lr=3", f"keys=2,HF_TOKENS={REDACTED},lr=3"),
        (
            f"HF_TOKENS:\n- {SECRET}\n- 'qwertz98765'\nlr: 3e-4",
            f"HF_TOKENS:\n- {REDACTED}\n- '{REDACTED}'\nlr: 3e-4",
        ),
        (
            f"log:\n  api_keys:\n    wandb: {SECRET}\n    other:\n    - qwertz98765\n  model: act_7b",
            f"log:\n  api_keys:\n    wandb: {REDACTED}\n    other:\n    - {REDACTED}\n  model: act_7b",
        ),
        (
            "image_keys:\n- observation.top1\nmax_tokens: 4096",
            "image_keys:\n- observation.top1\nmax_tokens: 4096",
        ),
        (f"os.environ['HF_TOKEN'] = '{SECRET}'", f"os.environ['HF_TOKEN'] = '{REDACTED}'"),
        (f"client_secret => {SECRET}", f"client_secret => {REDACTED}"),
        (f"MY_SERVICE_KEY={SECRET}", f"MY_SERVICE_KEY={REDACTED}"),
        ("wandb.login(key='Zq7Rk29XpLm4Tn8W')", f"wandb.login(key='{REDACTED}')"),
        ("{'user': 'me', 'key': '3f2a9c01b2d4e5f6'}", f"{{'user': 'me', 'key': '{REDACTED}'}}"),
        ("('password', 'Zq7Rk29XpLm4Tn8W')", f"('password', '{REDACTED}')"),
        ("the password is Zq7Rk29XpLm4Tn8W", f"the password is {REDACTED}"),
        ("password:\nZq7Rk29XpLm4Tn8W\n", f"password:\n{REDACTED}\n"),
        (f"wandb login {'0af1' * 10}", f"wandb login {REDACTED}"),
        (
            f"machine api.wandb.ai login user password {SECRET}",
            f"machine api.wandb.ai login user password {REDACTED}",
        ),
        ("use hf_" + "aB3" * 11 + ".", f"use {REDACTED}."),
        ("ghp_" + "A1" * 18, REDACTED),
        ("ghs_" + "A1" * 18, REDACTED),
        ("github_pat_" + "A1_" * 18, REDACTED),
        ("id AKIA" + "A1B2" * 4 + " x", f"id {REDACTED} x"),
        ("sk-proj-" + "ab1" * 10, REDACTED),
        ("sk-ant-api03-" + "aB1_" * 10, REDACTED),
        ("xoxb-" + "1234567890-abc", REDACTED),
        ("AIza" + "Sy_-4" * 7, REDACTED),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def_", REDACTED),
        (
            f"a\n-----BEGIN RSA PRIVATE KEY-----\nMII{SECRET}\n-----END RSA PRIVATE KEY-----\nb",
            f"a\n{REDACTED}\nb",
        ),
        (f"-----BEGIN PRIVATE KEY-----\\nMII{SECRET}\\n-----END PRIVATE KEY-----", REDACTED),
    ],
)
def test_secrets_go_and_the_text_around_them_stays(text: str, redacted: str) -> None:
    assert Redactor().redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "--max_tokens=512 --tokenizer gpt2 --use_auth_token=True --token None",
        "step:200 loss:6.781 grdn:20.0 lr:3.0e-05 updt_s:0.100 data_s:0.009 tokens: 12 token_acc: 0.9",
        "pad_token=<pad>, eos_token: </s>, author: someone, --dataset.image_key=observation.image",
        "Unexpected key 'model.layers.10.mlp.experts.3.w1.weight', 'layer10_block2_head3_weight4'",
        "key: layer10_block2_head3_weight4",
        "key=train/loss_2024_a1b2c3",
        "the token was rejected: KeyError('x') in sk-learn-contrib-packages, task-sk-x",
        'raise ValueError("password must not be empty")',
        "commit 0123456789abcdef0123456789abcdef01234567 eyJ not.a.token",
        "https://host:8080/path@2x and user@host",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor().redact(text) == text


def test_values_of_the_runs_own_variables_and_flags_go_wherever_they_are() -> None:
    redactor = Redactor(
        {
            "X_TOKEN": 'quo"te\\slash',
            "MY_SECRET": SECRET,
            "A_KEY": "x",
            "B_TOKEN": "true",
            "PWD": "/home/me/work",
            "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
            "MULTI_KEY": "first line of it\nand the second line",
        },
        ["t", "--api_key=valueofflag", "--token", "anothervalue", "--max_tokens", "tokenvalue"],
    )
    assert redactor.redact(f"saw {SECRET[:3]} {SECRET}!") == f"saw {SECRET[:3]} {REDACTED}!"
    assert redactor.redact('quo"te\\slash "quo\\"te\\\\slash"') == f'{REDACTED} "{REDACTED}"'
    assert redactor.redact("quo%22te%5Cslash") == REDACTED
    assert redactor.redact("valueofflag anothervalue tokenvalue") == f"{REDACTED} {REDACTED} tokenvalue"
    assert (
        redactor.redact("x true /home/me/work /home/me/key.json") == "x true /home/me/work /home/me/key.json"
    )
    assert redactor.redact("and the second line") == REDACTED


HARMLESS = (
    *("--placeholder_token=cat1", "--instance_token=sks", "--register_token=4", "--checkpoint_key=model_ema"),
    *("--key=observation.images.top", "--first_stage_key=image", "--rng_key=12345", "--gate_pass=high"),
    *("--n_pass 12", "--pass 1000", "--cookie=1", "--model=sk-learn-model-v2-large-16"),
)


@pytest.mark.parametrize("words", HARMLESS)
def test_what_names_a_column_or_counts_stays(words: str) -> None:
    argv = ("train.py", *words.split())
    redactor = Redactor({}, argv)
    assert redactor.redact_argv(argv) == argv
    assert redactor.redact(words) == words


@pytest.mark.parametrize(
    "words", ["--key=abcDEF123456789x", "--pass=hunter22", "--token=abcdef", "--api_key=a.b"]
)
def test_what_may_be_a_secret_under_such_a_name_goes(words: str) -> None:
    argv = ("train.py", words)
    assert "[redacted]" in Redactor({}, argv).redact_argv(argv)[1]


def test_a_command_keeps_its_words() -> None:
    argv = [
        "t",
        "--token",
        "abc",
        "--password=1",
        "a.api_key=" + SECRET,
        "--use_auth_token",
        "true",
        "--lr",
        "1",
        "--cfg",
        f'{{"api_key": "{SECRET}"}}',
        "https://u:pw1@h",
        "--token",
        "--hf_token",
    ]
    assert Redactor().redact_argv(argv) == (
        "t",
        "--token",
        REDACTED,
        f"--password={REDACTED}",
        f"a.api_key={REDACTED}",
        "--use_auth_token",
        "true",
        "--lr",
        "1",
        "--cfg",
        f'{{"api_key": "{REDACTED}"}}',
        f"https://u:{REDACTED}@h",
        "--token",
        "--hf_token",
    )


CANARY = st.text(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", min_size=12, max_size=40
).map(lambda text: "Q7" + text)


@given(CANARY, st.text(max_size=20), st.text(max_size=20))
def test_a_canary_in_a_variable_never_comes_through(canary: str, before: str, after: str) -> None:
    assert canary not in Redactor({"CANARY_TOKEN": canary}).redact(before + canary + after)


@given(
    CANARY,
    st.sampled_from(
        ["--api_key={}", "--hf_token={}", "--password {}", "export MY_SECRET={}", '"token": "{}"']
    ),
)
def test_a_canary_beside_its_name_never_comes_through(canary: str, where: str) -> None:
    assert canary not in Redactor().redact("x " + where.format(canary) + " y")


PIECES = [
    "key",
    "token",
    "secret",
    "_",
    "-",
    "--",
    "=",
    ": ",
    " ",
    '"',
    "'",
    "\\",
    "a",
    "eyJ",
    ".",
    "://",
    "@",
    "hf_",
    "[redacted]",
    "bearer ",
    "\n",
    "İ",
    "=>",
    "==",
    "sk-",
    "1",
    "-----BEGIN PRIVATE KEY-----",
    "login ",
    "password",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text())
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor()
    once = redactor.redact(text)
    assert redactor.redact(once) == once


@given(st.lists(st.text(max_size=15) | st.sampled_from(["--token", "--api_key=x", "-b", "token=y"])))
def test_any_command_keeps_its_number_of_words(argv: list[str]) -> None:
    assert len(Redactor({}, argv).redact_argv(argv)) == len(argv)


HOSTILE = [
    "a",
    "key=",
    "api_key=a ",
    "token ",
    "token",
    "--token a ",
    "-",
    "-a b ",
    "sk-",
    "sk-a ",
    "eyJ",
    "eyJaaaaaaaaaa.",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----BEGIN ",
    "://",
    "://a:",
    "://" + "a" * 256,
    'password="a\\"',
    "token='",
    "token=\"x token='y ",
    "_key",
    "login a ",
    "login        ",
    "wandb login -a ",
    " ",
    "=",
    '"',
    'secret"  ',
    "-" + "a" * 64 + " ",
    "--" + "key" * 20 + " ",
    "-auth",
    "hf_",
    "hf_aaaaaaaaaaaaaaaaaaa ",
    "bearer ",
    "\n",
    "é",
    " --a",
    " --" + "auth-" * 13,
    "x_key=",
    "pad_token=",
    "ghp_",
    "[redacted]",
    "password: x\n",
    "key\\",
]


def test_the_time_is_linear_whatever_the_text() -> None:
    redactor = Redactor({"A_SECRET": "aaaaaaaa", "B_TOKEN": "0123456789"})
    slow = {}
    for piece in HOSTILE:
        text = (piece * (SIZE // len(piece) + 1))[:SIZE]
        # The bar is 50 ms of the process's own time, 200 ms a MiB; the margin is for a loaded machine.
        start = time.process_time()
        redactor.redact(text)
        spent = time.process_time() - start
        if spent > 0.25:
            slow[piece] = spent
    assert slow == {}
