"""Each shape of a secret, as text, as JSON and as a command's words; and what must not be taken for one."""

from __future__ import annotations

import json
import time

import pytest

from gpudebug.core.redaction.records import scrubbed
from gpudebug.core.redaction.redact import REDACTED, Redactor, secret_pair, sensitive_flag, sensitive_variable

PW = "Q7x9Kd2mVb4TzR8w"
HEX40 = "9f1c3b5d7e0a2c4f6b8d9f1c3b5d7e0a2c4f6b8d"
HEX32 = HEX40[:32]
MIXED = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7"

# What is written, and the secret in it.
BY_NAME = {
    name: (f"{name}={PW}", PW)
    for name in (
        *("DB_PASS", "SMTP_PASS", "SSHPASS", "HF_TOKEN", "API_KEY", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY"),
        *("JWT", "SENTRY_DSN", "SLACK_WEBHOOK_URL", "AZURE_STORAGE_CONNECTION_STRING", "MYSQL_PWD", "GH_PAT"),
        *("PGPASSWORD", "MYSQL_PASSWD", "SSH_PASSPHRASE", "CLIENT_SECRET", "HF_TOKENS", "API_KEYS"),
        *("SESSION_COOKIE", "PROXY_AUTH", "APP_CREDENTIALS", "OAUTH_TOKEN_2", "REFRESH_TOKEN", "LDAP_PASS"),
        *(
            "--password",
            "--hf-token",
            "--wandb.api_key",
            "--db_pass",
            "--smtp-pass",
            "--api-keys",
            "--secret",
        ),
        *(
            "--jwt",
            "--dsn",
            "--private_key",
            "--auth",
            "--credentials",
            "--connection-string",
            "trainer.pass_key",
        ),
    )
}
SHAPES = {
    "hugging face": ("hf_" + MIXED[:34], "hf_" + MIXED[:34]),
    "github": ("ghp_" + MIXED[:36], "ghp_" + MIXED[:36]),
    "github app": ("ghs_" + MIXED[:36], "ghs_" + MIXED[:36]),
    "github fine grained": ("github_pat_" + MIXED, MIXED),
    "gitlab": ("glpat-" + MIXED[:20], MIXED[:20]),
    "openai": ("sk-" + MIXED, MIXED),
    "openai project": ("sk-proj-" + MIXED, MIXED),
    "anthropic": ("sk-ant-api03-" + MIXED, MIXED),
    "stripe": ("sk_live_" + MIXED[:24], MIXED[:24]),
    "stripe restricted": ("rk_live_" + MIXED[:24], MIXED[:24]),
    "aws key id": ("AKIAQ7X9KD2MVB4TZR8W", "AKIAQ7X9KD2MVB4TZR8W"),
    "aws temporary": ("ASIAQ7X9KD2MVB4TZR8W", "ASIAQ7X9KD2MVB4TZR8W"),
    "slack": ("xoxb-" + "1234567890-" + MIXED[:20], MIXED[:20]),
    "google": ("AIza" + MIXED[:35], MIXED[:35]),
    "google oauth": ("ya29." + MIXED, MIXED),
    "google client": ("GOCSPX-" + MIXED[:28], MIXED[:28]),
    "nvidia": ("nvapi-" + MIXED + MIXED, MIXED),
    "npm": ("npm_" + MIXED[:36], MIXED[:36]),
    "pypi": ("pypi-" + MIXED + MIXED, MIXED),
    "wandb new": ("wandb_v1_" + MIXED, MIXED),
    "wandb prompt": (f"wandb: {HEX40}", HEX40),
    "wandb asks": (f"wandb: Paste an API key from your profile and hit enter: {HEX40}", HEX40),
    "wandb login": (f"wandb login --relogin {HEX40}", HEX40),
    "groq": ("gsk_" + MIXED, MIXED),
    "replicate": ("r8_" + MIXED[:37], MIXED[:37]),
    "xai": ("xai-" + MIXED + MIXED, MIXED),
    "vault": ("hvs." + MIXED, MIXED),
    "docker": ("dckr_pat_" + MIXED[:27], MIXED[:27]),
    "digital ocean": ("dop_v1_" + HEX32 + HEX32, HEX32),
    "sendgrid": (f"SG.{MIXED[:22]}.{MIXED[:39]}", MIXED[:39]),
    "age": ("AGE-SECRET-KEY-1" + MIXED.upper(), MIXED.upper()),
    "slack hook": (f"https://hooks.slack.com/services/T0AB/B0CD/{MIXED[:24]}", MIXED[:24]),
    "discord hook": (f"https://discord.com/api/webhooks/123456789/{MIXED}", MIXED),
    "discord bot": (f"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{MIXED[:27]}", MIXED[:27]),
    "telegram": (f"bot123456789:AA{MIXED[:33]}", MIXED[:33]),
    "azure account": (f"AccountName=x;AccountKey={MIXED}==;EndpointSuffix=y", MIXED),
    "azure bus": (f"Endpoint=sb://x/;SharedAccessKey={MIXED}=", MIXED),
    "azure sas": (f"https://x.blob.core.windows.net/c?sv=2022&sig={MIXED}%3D", MIXED),
    "aws signature": (f"https://s3/x?X-Amz-Signature={HEX40}{HEX32[:24]}", HEX40),
    "aws security token": (f"https://s3/x?X-Amz-Security-Token={MIXED}", MIXED),
    "sentry": (f"https://{HEX32}@o1.ingest.sentry.io/1", HEX32),
    "kaggle": (f'{{"username":"me","key":"{HEX32}"}}', HEX32),
    "jwt": ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + MIXED, MIXED),
    "private key": (f"-----BEGIN PRIVATE KEY-----\n{MIXED}\n-----END PRIVATE KEY-----", MIXED),
    "bearer": (f"Authorization: Bearer {PW}", PW),
    "basic": (f"Authorization: Basic {PW}", PW),
    "url": (f"postgres://me:{PW}@host/db", PW),
    "url without a user": (f"redis://:{PW}@host:6379/0", PW),
    "url with a slash": (f"postgres://me:{PW[:8]}/{PW[8:]}@host/db", PW[8:]),
    "url with an at": (f"postgres://me:{PW[:8]}@{PW[8:]}@host/db", PW[8:]),
    "url with both": (f"amqp://me:{PW[:6]}@/{PW[6:]}@host/db", PW[6:]),
    "query": (f"https://h/x?token={PW}&a=1", PW),
    "query key": (f"https://h/x?key={PW}&a=1", PW),
    "curl": (f"curl -s -u me:{PW} https://h", PW),
    "curl long": (f"curl --user me:{PW} https://h", PW),
    "sshpass": (f"sshpass -p {PW} ssh host", PW),
    "sshpass at once": (f"sshpass -p{PW} ssh host", PW),
    "docker login": (f"docker login -u me -p {PW} reg.io", PW),
    "podman login": (f"podman login reg.io --password={PW}", PW),
    "mysql": (f"mysqldump -h db -u me -p{PW} data", PW),
    "smtp login": (f"smtp.login(user, '{PW}')", PW),
    "openssl": (f"openssl rsa -passin pass:{PW}", PW),
    "pass line": (f"pass: {PW}", PW),
    "namespace": (f"Namespace(lr=0.1, db_pass='{PW}', steps=3)", PW),
    "namespace double": (f'Namespace(lr=0.1, db_pass="{PW}", steps=3)', PW),
    "repr of a list": (f"Namespace(tokens=['{PW}', 'b'], x=1)", PW),
    "tokens": (f"tokens: [{PW}, {PW[::-1]}]", PW[::-1]),
    "secrets": (f'secrets: ["one", "{PW}"]', PW),
    "passwords": (f"passwords = ('a', '{PW}')", PW),
    "environ": (f"os.environ['HF_TOKEN'] = '{PW}'", PW),
    "environ repr": (f"environ({{'DB_PASS': '{PW}', 'A': 'b'}})", PW),
    "ruby": (f"client_secret => {PW}", PW),
    "escaped": (f'"{{\\"api_key\\": \\"{PW}\\"}}"', PW),
    "yaml": (f"HF_TOKEN: {PW}\nnext", PW),
    "netrc": (f"machine api.wandb.ai login user password {PW}", PW),
    "hidden inside": ("hf_aB3dE5fG7h\u200bJ9kL1mN3pQ5rS7tU", "J9kL1mN3pQ5rS7tU"),
    "hidden in a name": (f"pass\u200bword={PW}", PW),
    "soft hyphen": ("ghp_aB3dE5fG7h\u00adJ9kL1mN3pQ5rS7tU", "J9kL1mN3pQ5rS7tU"),
}
CASES = {**BY_NAME, **SHAPES}


def test_the_table_is_long_enough() -> None:
    assert len(CASES) >= 104


@pytest.mark.parametrize("case", CASES)
def test_a_secret_goes_from_text_json_and_commands(case: str) -> None:
    text, secret = CASES[case]
    redactor = Redactor()
    assert secret not in redactor.redact(f"before {text} after")
    assert secret not in redactor.redact(f"a line\n{text}\nanother")
    assert secret not in redactor.redact(json.dumps({"line": text}))
    assert secret not in json.dumps(scrubbed({"lines": [text]}, redactor.redact))
    assert secret not in " ".join(redactor.redact_argv(["python", "t.py", text]))
    assert secret not in " ".join(redactor.redact_argv(text.split()))


@pytest.mark.parametrize("case", CASES)
def test_redacting_a_secret_again_changes_nothing(case: str) -> None:
    once = Redactor().redact(CASES[case][0])
    assert Redactor().redact(once) == once


@pytest.mark.parametrize(
    "name",
    [
        *("DB_PASS", "SMTP_PASS", "SSHPASS", "HF_TOKENS", "API_KEYS", "AZURE_STORAGE_CONNECTION_STRING"),
        *("SLACK_WEBHOOK_URL", "SENTRY_DSN", "JWT", "NETRC", "DB_PASSWORDS", "SERVICE_SECRETS"),
    ],
)
def test_a_variable_that_holds_a_secret_is_known_by_its_name(name: str) -> None:
    assert sensitive_variable(name)
    assert Redactor({name: PW}).redact(f"could not log in with {PW}!") == f"could not log in with {REDACTED}!"


@pytest.mark.parametrize(
    "value",
    [
        f"postgres://me:{PW}@host/db",
        f"redis://:{PW}@host:6379/0",
        f"mysql://me:{PW}@host/db?x=y",
    ],
)
def test_the_password_of_a_url_goes_wherever_it_is(value: str) -> None:
    assert PW not in Redactor({"DATABASE_URL": value}).redact(f"login of me with {PW} failed")


def test_each_of_several_secrets_in_one_variable_goes() -> None:
    redactor = Redactor({"HF_TOKENS": f"{PW},{PW[::-1]}", "X_CONNECTION_STRING": f"A=b;AccountKey={HEX40}"})
    assert redactor.redact(f"{PW} {PW[::-1]} {HEX40}") == " ".join([REDACTED] * 3)


@pytest.mark.parametrize(
    ("document", "secret"),
    [
        ({"secrets": ["one", PW]}, PW),
        ({"api": {"key": PW}}, PW),
        ({"trainer": {"wandb": {"key": PW}}}, PW),
        ({"pass": PW}, PW),
        ({"db_pass": PW}, PW),
        ({"tokens": [PW]}, PW),
        ({"password": 1234567}, "1234567"),
        ({"auth": [{"token": PW}]}, PW),
        ({"facts": {"cuda": "12.1", "hub_token": PW}}, PW),
        ({"kaggle": {"key": HEX32}}, HEX32),
    ],
)
def test_a_secret_goes_from_json_by_its_key(document: object, secret: str) -> None:
    assert secret not in json.dumps(scrubbed(document, str))


KEPT = [
    *("loss: 0.1234567", "token_count=512", "tokens_per_s: 1234.5", "num_tokens: 123456", "pad_token: <pad>"),
    *(
        "max_new_tokens=2048",
        "eos_token='</s>'",
        "tokens: [101, 2023, 2003, 102]",
        "tokens: ['<pad>', '</s>']",
    ),
    *("key: value", "key: observation.image", "keys: ['state', 'action']", "n_keys=3", "num_keys: 12"),
    f"commit {HEX40}",
    f"HEAD is now at {HEX40[:7]}",
    f"sha256:{HEX32}{HEX32}",
    "GPU-5e1f0c0d-1b2c-4d3e-8f9a-0b1c2d3e4f5a",
    *("step 200/1000", "passes=3", "bypass: on", "compass=north", "first_pass: 0.123", "forward_pass=0.0123"),
    *("backward_pass: 12.5ms", "num_passes: 12345", "pass 1 of 3", "test passed: 1234567", "low_pass=4096"),
    *(
        "tokenizer: gpt2",
        "tokenizer=facebook/opt-125m-2024",
        "author: someone1234567",
        "authored_by=me12345678",
    ),
    *("keyframes: 123456", "keyboard: us1234567", "monkey=banana123456", "image_key=observation.images.top1"),
    *("epoch=3 step=1200 lr=3.0e-05 grad_norm=1.23", "it/s: 12.34", "mem_used_mb=12345.6", "seed: 20240131"),
    *("url=https://host:8080/path@2x", "https://huggingface.co/datasets/lerobot/pusht", "s3://bucket/key/x1"),
    *("pip@https://host/x", "git+https://github.com/a/b@v1.2.3", "user@host:22", "http://[::1]:8080/x@y"),
    *("python -u train.py", "ssh -p 2222 host", "--sort_key=step", "--cache-key 12", "primary_key: id"),
    *("wandb: Run data is saved locally in /x/wandb/run-20240101_010101-abc12345", "wandb: Syncing run 1"),
    *("val_loss=0.5 token_acc=0.91 tokens=123456789", "AssertionError: got 3 keys", "passing=12 failing=3"),
    *("hidden_size: 4096", "checkpoint-20000", "torch-2.4.0+cu121", "sk-learn", "dsnet: 50", "jwts"),
    *(
        "The pass: no problem",
        "connection: closed",
        "connections=1234567",
        "webhooks_sent",
        "patience=12345678",
    ),
    *("pass: 12/30", "pass: 0.9987654", "pass=99.123456%", "past_key_values=None", "layer.0.key.weight 1024"),
    *("steps_per_s 3.21", "0001-baseline-workload", "runs/0012-h3-trial", "MIG-GPU-1/2/3", "sig=abc"),
]


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor().redact(text) == text
    assert Redactor().redact(f"[rank0] {text}, 5") == f"[rank0] {text}, 5"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("key", "steps_per_s"), ("key", "gpu_util"), ("pass", "forward"), ("tokens", "<pad>")),
        *(("token_count", "512345"), ("pad_token", "<pad>"), ("tokens_per_s", "1234567"), ("title", MIXED)),
        *(("uuid", "GPU-5e1f0c0d-1b2c-4d3e-8f9a"), ("tree", HEX40), ("image_key", "observation.images")),
        *(("auth", "true"), ("password", ""), ("hub_token", "None"), ("use_auth", "False")),
    ],
)
def test_keys_that_lead_to_no_secret(key: str, value: str) -> None:
    assert not secret_pair(key, value)


def test_a_random_variable_goes_from_quoted_lines_and_identities_stay() -> None:
    env = {
        "PLAIN": MIXED,
        "GIT_COMMIT": HEX40,
        "CUDA_VISIBLE_DEVICES": "GPU-5e1f0c0d-1b2c-4d3e-8f9a-0b1c2d3e4f5a",
        "HOME": "/home/some1/body2/with3/path4",
        "PROJECT": "my-long-project-name-of-2024",
        "WORDS": "one two three four five 1 2 3",
    }
    line = " ".join(["rejected", *env.values()])
    assert Redactor(env).quoted(line) == line.replace(MIXED, REDACTED)
    assert Redactor(env).redact(line) == line


HOSTILE = [
    *(
        "://a:@",
        "://a:" + "b" * 200,
        "://a:@@",
        "curl -u a:",
        "sshpass -p ",
        "docker login -p ",
        "mysql -p -p",
        "smtp.login(a, '",
        "tokens=[",
        "tokens: [a1B2c3D4e5F6g7H8,",
    ),
    *(
        "secrets: [",
        "secrets=[[",
        "key=[1,",
        "password = {",
        "pass:",
        "pass=1",
        "_pass=",
        "wandb: key ",
        "wandb:",
    ),
    *(
        "hooks.slack.com/services/",
        "AccountKey=",
        "?sig=",
        "X-Amz-Signature=",
        "SG.a.",
        ":AA",
        "12345678:AA",
        '"key":',
    ),
    *(
        "M" * 24 + ".",
        ".a.",
        "sk_live_",
        "dop_v1_",
        "\u200b",
        "pass\u200bword=",
        "connection_string=",
        "dsn=",
        "tokens",
    ),
    *("authorization: a ", "Authorization: aaa a", "api key ", "key|", "token  ", "token |", "| token | a"),
    *("</", "token></", "password>", "password>a</", "token:\n ", "token: >-\n  a", "env ", "env a_token "),
    *("\x1b[", "\x1b[1m", "\\u001b[", "env api_", "token" + " " * 40 + "|" + " " * 40),
    *(
        "SG." + "a" * 22 + ".",
        "api_keys=",
        "webhook_url=",
        "://0123456789abcdef",
        "curl curl -u ",
        "AGE-SECRET-KEY-",
    ),
]


def _spent(piece: str, size: int) -> float:
    """CPU seconds that so much text of a piece takes, the least of two."""
    redactor, text = Redactor({"DATABASE_URL": "x://a:aaaaaaaa@h"}), (piece * (size // len(piece) + 1))[:size]
    spent = []
    for _ in range(2):
        start = time.process_time()
        redactor.redact(text)
        spent.append(time.process_time() - start)
    return min(spent)


def test_the_time_is_linear_in_each_new_shape() -> None:
    """Four times the text takes four times as long; neighbours may double it."""
    slow = {}
    for piece in HOSTILE:
        large = _spent(piece, 2**18)
        if large > 0.1 and large > 8 * _spent(piece, 2**16):
            slow[piece] = large
    assert slow == {}


S = "Zq8Kd2mVb4TzR8wP"
HEX = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    "text",
    [
        *(f"dapi{HEX[:32]}", f"glsa_{S}{S}_01234567", f"sntrys_{S}{S}", f"sntryu_{HEX}", f"lin_api_{S}{S}"),
        *(f"shpat_{HEX[:32]}", f"tskey-auth-{S}-{S}", f"PMAK-{HEX[:24]}-{HEX[:34]}", f"NRAK-{S.upper()}ABCD"),
        *(f"figd_{S}{S}", f"ATATT3{S}{S}", f"pul-{HEX}", f"pplx-{S}{S}", f"tgp_v1_{S}{S}", f"api_org_{S}{S}"),
        *(f"rpa_{S.upper()}ABCD", f"glptt-{HEX}", f"gldt-{S}abcd", f"dp.st.prd.{S}{S}", f"sq0atp-{S}abcdef"),
        *(f"CFPAT-{S}{S}", f"ntn_{S}{S}", f"wandb: Using key {HEX}", f"WANDB_API_KEY {HEX}"),
        *(f"pwd={S}", f"Server=h;Uid=u;Pwd={S};", f"https://{S}@github.com/x/y", f"passcode={S}"),
        *(f"aws configure set aws_secret_access_key {S}", f"https://h/o?X-Goog-Signature={HEX}{HEX}"),
        *(f"Authorization: ApiKey {S}", f'{{"authorization": "Splunk {S}"}}', f"Invalid API key: {S}"),
        *(f"Incorrect API key provided: {S}", f"assert api_key == {S}", f"| api_key  |  {S} |"),
        *(
            f"┃ hf_token ┃ {S} ┃",
            f"<password>{S}</password>",
            f"password:\n  {S}\n",
            f"db_pass: >-\n    {S}\n",
        ),
        *(f"\x1b[32mapi_key\x1b[0m: {S}", f"api_\x1b[1mkey={S}", f"api\\u001b[1m_key={S}"),
        *(f"ENV DB_PASS {S}", f"setenv HF_TOKEN {S}", f"ENV\tAPI_KEY\t{S}"),
        *(f"DAGSHUB_USER_TOKEN={S}", f"S3_ACCESS_KEY_ID={S}", f"SECRET_KEY_BASE={S}", f"cookies={S}"),
    ],
)
def test_more_shapes_and_names(text: str) -> None:
    clean = Redactor().redact(f"x {text} y")
    assert REDACTED in clean
    assert not any(part in clean for part in (S, S.upper(), HEX[:24], HEX[:32]))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "PWD=/home/me/work",
            "pwd: /x",
            "pwd=$(pwd)",
            "cwd=abcdefgh",
            "https://host.example/x@y",
            "cookiecutter",
        ),
        *(
            "| token | loss | acc |",
            "| key | 12 |",
            "tokens | 1234567 |",
            "<key>",
            "a </b> <token>",
            "x\n  y",
        ),
        *("auth:\n  user: bob", "secrets:\n  - one", "token:\n  step 12 of 30", "env token x", "\x1b[1mloss"),
        *("environment key 12", "the API key was found", "if n == 12:"),
        *("dapi", "pul-1", "rpa_mode", "https://user@host/x", "upw=abcdefgh", "user_token: <user>"),
    ],
)
def test_what_is_like_more_shapes_stays(text: str) -> None:
    assert Redactor().redact(text) == text


@pytest.mark.parametrize(
    "document",
    [
        *({"password": {"value": S}}, {"tokens": {"hf": S}}, {"credentials": {"user": {"id": S}}}),
        *(
            {"cmd": ["train", "--hf-token", S]},
            {"pwd": S},
            {"pw": S},
            {"passcode": S},
            {"cookies": {"sid": S}},
        ),
        {"password": [{"value": S}, [S]]},
    ],
)
def test_what_a_key_above_calls_a_secret_goes(document: dict[str, object]) -> None:
    assert S not in str(scrubbed(document, Redactor().redact))


def test_a_list_that_is_no_command_stays() -> None:
    document = {"args": ["train", "--lr", "0.1", "--n", "y"], "pwd": "/x", "tokens": {"n": "gpt2"}}
    assert scrubbed(document, Redactor().redact) == document


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
