"""What a training, an agent or a clone wrote: no command hangs or dies of it, or repeats its secrets."""

from __future__ import annotations

import gzip
import json
import resource
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import (
    Campaign,
    gpudebug,
    make_campaign,
    make_replay_campaign,
    record,
)

MEMORY = 1_500_000_000
WITHIN_S = 100
HEADER = "elapsed,gpu_util,mem_used_mb,gpu_index,gpu_uuid,new_samples,rss_mb,log_bytes\n"
CANARY = "Q7x9Kd2mVb4TzR8w"
ESCAPES = "x\x1b]0;PWNED\x07\x1b[2J\x9b31m\u202ey\u2066z"
OBEYED = [*map(chr, range(9)), *map(chr, range(14, 32)), "\x9b", "\x7f", "\u202e", "\u2066", "\u200b"]


def limited(folder: Path, *words: str, **more: Any) -> Any:
    """The command with little memory and little time."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    return gpudebug(folder, *words, timeout=WITHIN_S, preexec_fn=limit, **more)


def sparse(path: Path, head: str, size: int) -> Path:
    with path.open("w") as f:
        f.write(head)
        f.truncate(size)
    return path


def test_samples_of_three_gigabytes_of_nothing_are_one_line(tmp_path: Path) -> None:
    path = sparse(tmp_path / "samples.csv", HEADER + "0.2,50,100,0,CPU,1,100,10\n", 3 << 30)
    done = limited(tmp_path, "analyze", str(path)).expect(1)
    assert done.err.count("\n") == 1
    assert "samples.csv" in done.err
    assert "lines of more than 64 KB" in done.err


TRUNCATES = """
import os, sys, time
where = os.environ["GPUDEBUG_RUN_DIR"]
for folder in (where, os.path.dirname(where)):
    path = os.path.join(folder, "samples.csv")
    if os.path.exists(path):
        os.truncate(path, 700 << 20)
for step in range(1, 9):
    time.sleep(0.2)
    print(f"step {step}/8 loss {1 / step:.3f}", flush=True)
"""


@pytest.mark.slow
def test_a_training_that_blows_up_its_samples_blocks_no_campaign(tmp_path: Path) -> None:
    campaign = make_campaign(
        tmp_path / "repo",
        command=f"{sys.executable} bad.py",
        files={"bad.py": TRUNCATES},
    )
    for _ in range(2):
        done = limited(campaign.folder, "next", "--json")
        assert done.status not in (3, -9), done.out + done.err
        assert "defect" not in done.out + done.err


def test_a_saved_configuration_of_aliases_is_left_out(tmp_path: Path) -> None:
    from gpudebug.core.trainlog.printed_settings import read_saved

    text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    assert len(text) < 1000
    assert read_saved("hparams.yaml", text) == {}


@pytest.mark.parametrize(
    "content",
    [
        '{"traceEvents": [{"ph": "X", "name": "a", "args": '
        + '{"a":' * 100_000
        + "1"
        + "}" * 100_000
        + "}]}",
        '{"traceEvents": [{"ph": "X", "name": "a", "args": ' + "[" * 100_000,
        '{"schemaVersion": ' + "[" * 100_000 + "]" * 100_000 + ', "traceEvents": []}',
        '{"traceEvents": []' + ', "x": [' * 50_000,
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_of_nested_brackets_is_no_defect(tmp_path: Path, content: str, packed: bool) -> None:
    path = tmp_path / ("t.json.gz" if packed else "t.json")
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    done = limited(tmp_path, "analyze", str(path), "--json")
    assert done.status in (0, 1), done.out + done.err


def test_a_section_report_of_nested_brackets_is_no_defect(tmp_path: Path) -> None:
    path = tmp_path / "sections.json"
    path.write_text('{"format": "gpudebug-sections", "version": 1, "tree": ' + "[" * 200_000)
    assert limited(tmp_path, "analyze", str(path), "--json").expect(1).json["error"]["code"] == "error"


def test_a_log_that_begins_with_digits_alone_is_quick(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("1" * (128 << 10) + "\nstep 1 loss 0.5\nstep 2 loss 0.4\n")
    assert limited(tmp_path, "analyze", str(path), "--json").expect(0).json["loss"]["points"] == 2


def test_a_cause_whose_words_never_end_is_refused_with_its_line(tmp_path: Path) -> None:
    cause = (
        "id: my\ntitle: Mine\nprior: {default: 1}\nexplanation: e\nfix: f\n"
        "signature: [{signal: gpu_util, below: 50, weight: 2}]\n"
    )
    campaign = make_campaign(
        tmp_path / "repo", files={"hypotheses/my.yaml": cause + "words: ['(\\w+\\s?)+\\x21']\n"}
    )
    done = limited(campaign.folder, "catalogue")
    assert done.status == 1, done.out
    assert "hypotheses/my.yaml:7" in done.err
    assert "within a repeat" in done.err
    assert "next:" in done.err


def test_a_log_pattern_that_never_ends_is_refused_with_its_line(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo", config="log:\n  loss: '(?P<value>(\\d+)*)x'\n")
    done = limited(campaign.folder, "status")
    assert done.status != 3
    assert "gpudebug.yaml:" in done.err
    assert "repeat" in done.err


@pytest.fixture
def secretive(tmp_path: Path) -> Campaign:
    return make_campaign(
        tmp_path / "repo",
        command=f"{sys.executable} train.py --password={CANARY}flag --wandb.api_key {CANARY}key",
        files={"runs/0001-x/train.log": ""},
    )


def test_analyze_quotes_a_failure_without_the_secrets_of_its_campaign(secretive: Campaign) -> None:
    env = {
        "PLAIN_VARIABLE": f"{CANARY}Env1",
        "DB_PASS": f"{CANARY}db",
        "DATABASE_URL": f"x://u:{CANARY}/u@h/d",
    }
    log = secretive.folder / "runs" / "0001-x" / "train.log"
    log.write_text(
        "step 1 loss 1\nTraceback (most recent call last):\n"
        f'  File "t.py", line 1, in <module>\n    login("{CANARY}flag", "{CANARY}key")\n'
        f"RuntimeError: no login with {' '.join(env.values())} {CANARY}/u\n"
    )
    for words in (("--json",), ()):
        done = secretive.run("analyze", str(log), *words, env=env).expect(0)
        assert CANARY not in done.out + done.err
        assert "RuntimeError" in done.out


def test_an_error_quotes_no_secret_of_the_environment(tmp_path: Path) -> None:
    env = {"SMTP_PASS": f"{CANARY}a", "PLAIN": f"{CANARY}bB1"}
    for words in (("analyze", f"{CANARY}a"), ("analyze", f"{CANARY}bB1", "--json")):
        done = gpudebug(tmp_path, *words, env=env).expect(1)
        assert CANARY not in done.out + done.err


def test_saved_configurations_are_kept_without_what_their_keys_call_a_secret(tmp_path: Path) -> None:
    from gpudebug.core.redaction.redact import Redactor
    from gpudebug.engine.run.extras import without_secrets

    document = {"secrets": [CANARY], "pass": CANARY, "api": {"key": CANARY}, "lr": 0.1, "image_key": "top"}
    kept = without_secrets("args.json", json.dumps(document), Redactor())
    assert kept is not None
    assert CANARY not in kept
    assert json.loads(kept)["lr"] == 0.1
    assert json.loads(kept)["image_key"] == "top"
    written = f"lr: 0.1 # as ever\nsecrets:\n  - {CANARY}\napi:\n  key: {CANARY}\npass: {CANARY}\n"
    kept = without_secrets("hparams.yaml", written, Redactor())
    assert kept is not None
    assert CANARY not in kept
    assert without_secrets("hparams.yaml", "lr: 0.1 # as ever\n", Redactor()) == "lr: 0.1 # as ever\n"


@pytest.mark.slow
@pytest.mark.parametrize("json_", [False, True])
def test_no_answer_of_a_hostile_campaign_holds_what_a_terminal_obeys(tmp_path: Path, json_: bool) -> None:
    campaign = make_campaign(tmp_path / "repo")
    campaign.json("next")
    with campaign.progress.open("a") as f:
        f.write(f"\n### Hypothesis 1: Hand {ESCAPES}\n- **Description**: {ESCAPES}\n- **Status**: UNTESTED\n")
    more = ("--json",) if json_ else ()
    for words in (("status",), ("show", "1"), ("verify",), ("doctor",)):
        done = campaign.run(*words, *more)
        assert [c for c in OBEYED if c in done.out + done.err] == [], words
        if json_:
            json.loads(done.out)
    page = Path(campaign.json("report")["page"]).read_text("utf-8")
    # The drawing script has its own; what comes from the campaign stands next to its words.
    assert "PWNED" in page
    assert "\x1b" not in page
    assert "\u202ey" not in page
    assert "\u2066z" not in page


def test_an_error_about_a_hostile_name_is_one_harmless_line(tmp_path: Path) -> None:
    done = gpudebug(tmp_path, "analyze", f"{ESCAPES}\nnext.log").expect(1)
    assert [c for c in OBEYED if c in done.err] == []
    assert done.err.count("\n") == 1


def test_a_remark_about_a_hostile_name_is_one_harmless_line(capsys: pytest.CaptureFixture[str]) -> None:
    from gpudebug.engine.run.live_line import Live
    from gpudebug.terminal.live import LiveLine

    with LiveLine() as live:
        unknown = (None, None, None, None, None)
        live(Live("0001-x", 1.0, *unknown, remark=f"a file {ESCAPES}.py was made\nhere"))
        live(Live(f"0001-{ESCAPES}", 1.0, *unknown))
        live.doing(f"reading {ESCAPES}")
    err = capsys.readouterr().err
    assert [c for c in OBEYED if c in err] == []
    assert err.count("\n") == 3


def test_secrets_that_are_words_of_our_own_change_no_record(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    for number, label in enumerate(("baseline-workload", "baseline-workload", "h1"), 1):
        trial = label == "h1"
        record(recorded, f"{number:04d}-{label}", util=70 if trial else 20, seed=number)
    campaign = make_replay_campaign(tmp_path / "my-folder", recorded)
    env = {
        "DB_PASSWORD": "workload",
        "API_TOKEN": "COMPLETED",
        "HF_TOKEN": "python",
        "WANDB_API_KEY": "my-folder",
        "AWS_SECRET_ACCESS_KEY": "recording",
    }
    baseline = campaign.json("next", env=env)
    assert (baseline["action"], baseline["role"]) == ("recorded_baseline", "workload")
    assert all(Path(file).exists() for file in baseline["files"])
    campaign.run("propose", "--title", "x", "--method", "m", "--set", "--lr=0.2", env=env).expect(0)
    tested = campaign.json("next", env=env)
    assert (tested["action"], tested["gates"][0]["value"]) == ("tested", "COMPLETED")
    for seen in (env, {}):
        checked = campaign.run("verify", "--json", env=seen).expect(0).json
        assert checked["checked"]["baselines"] == ["workload"]
        assert checked["root"] == str(campaign.folder)
        assert campaign.json("status", env=seen)["baselines"]["workload"]["valid"]
    run = json.loads((campaign.folder / "runs" / "0003-h1" / "run.json").read_text())
    assert (run["name"], run["role"], run["outcome"]) == ("0003-h1", "h1", "COMPLETED")
    assert "[redacted]" not in json.dumps([run["identity"], run["interpreter"], run["devices"], run["cwd"]])
