"""Proposals of several sessions at once, and sweeps; what may stand in one is in test_cli_hypotheses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_campaign

from gpudebug.core.change.intervention import parse as change_of
from gpudebug.core.errors import UsageError
from gpudebug.core.progress import parse
from gpudebug.engine.hypotheses.accept import accept
from gpudebug.engine.hypotheses.propose import Duplicate, propose


def test_proposals_at_the_same_moment_all_get_a_number_of_their_own(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    processes = [
        campaign.start("propose", "--title", f"Cause {n}", "--set", f"--work=0.{n}") for n in range(3, 9)
    ]
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    entries = parse(campaign.progress.read_bytes(), "progress.md").hypotheses
    assert [e.number for e in entries] == [1, 2, 3, 4, 5, 6]
    assert {e.title for e in entries} == {f"Cause {n}" for n in range(3, 9)}
    assert campaign.text.count("# GPU utilization debugging") == 1


def test_of_the_same_proposals_at_the_same_moment_one_is_taken(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    processes = [campaign.start("propose", "--title", f"By {n}", "--set", "--work=0.9") for n in range(5)]
    statuses = []
    for process in processes:
        process.communicate(timeout=60)
        statuses.append(process.returncode)
    assert sorted(statuses) == [0, 1, 1, 1, 1]
    assert len(parse(campaign.progress.read_bytes(), "progress.md").hypotheses) == 1


def swept(campaign: Campaign, *words: str) -> list[tuple[int, str, str | None]]:
    campaign.json("propose", *words)
    return [
        (h.number, h.title, h.intervention) for h in parse(campaign.progress.read_bytes(), "p").hypotheses
    ]


def test_a_sweep_is_a_hypothesis_a_value_as_the_contract_spells_it(tmp_path: Path) -> None:
    command = "python3 train.py --denoising_steps=8"
    campaign = make_campaign(tmp_path / "repo", command=command)
    assert swept(campaign, "--sweep", "--denoising_steps=4,2,1") == [
        (1, "--denoising_steps=4", "--set --denoising_steps=4"),
        (2, "--denoising_steps=2", "--set --denoising_steps=2"),
        (3, "--denoising_steps=1", "--set --denoising_steps=1"),
    ]
    titled = ("--title", "Threads", "--method", "Fewer.", "--sweep=env:OMP_NUM_THREADS=1,2")
    assert swept(campaign, *titled)[3:] == [
        (4, "Threads: OMP_NUM_THREADS=1", "--env OMP_NUM_THREADS=1"),
        (5, "Threads: OMP_NUM_THREADS=2", "--env OMP_NUM_THREADS=2"),
    ]
    assert campaign.text.count("- **Test Method**: Fewer.") == 2


def test_what_a_sweep_need_not_test_is_named_and_the_rest_is_written(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    campaign.propose("--set --work=0.5")
    words = ("--description", "It sleeps.", "--method", "Try it.")
    answer = campaign.json("propose", *words, "--sweep", "--work=0.2,0.5,0.9")
    assert [h["intervention"] for h in answer["hypotheses"]] == ["--set --work=0.9"]
    assert answer["notes"] == [
        "--work=0.2 is left out: the command has it already",
        "--work=0.5 is left out: it is hypothesis 1 already (UNTESTED)",
    ]
    before = campaign.progress.read_bytes()
    refused = campaign.run("propose", "--sweep", "--work=0.2,0.5").expect(1)
    assert "the command has it already" in refused.err
    assert "hypothesis 1 already" in refused.err
    assert campaign.progress.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--sweep", "--lr=1,2"), 1, "locks"),
        (("--sweep", "--work=0.3"), 1, "one value only"),
        (("--sweep", "--work=0.3,"), 1, "empty value"),
        (("--sweep", "--work=0.3,0.4", "--set", "--steps=5"), 2, "--sweep is the change itself"),
        ((), 2, "a hypothesis needs a title"),
    ],
)
def test_a_sweep_is_written_whole_or_not_at_all(
    tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    campaign = make_campaign(tmp_path / "repo", config="locked: [--lr]\n")
    assert said in campaign.run("propose", *words).expect(status).err
    assert not campaign.progress.exists()


def test_what_was_tested_is_refused_with_its_verdict_and_a_way_on(judged: Campaign) -> None:
    judged.add("\n### Hypothesis 7: By hand\n- **Intervention**: --set --y=1\n- **Status**: INCONCLUSIVE\n")
    before = judged.text.partition("## Hypotheses")[2]
    told = {
        "--set work=0.3": ("hypothesis 3 already (REJECTED: delta: ", "gpudebug show 3"),
        "--set=--lr=0.2": ("hypothesis 1 already (VALIDATED: delta +", "gpudebug accept 1"),
        "--set --y=1": ("hypothesis 7 already (INCONCLUSIVE: UNVERIFIED)", "gpudebug reopen 7"),
    }
    for words, (said, advice) in told.items():
        done = judged.run("propose", "--title", "Renamed", *words.split()).expect(1)
        assert said in done.err
        assert advice in done.err
    accept(judged.folder, 2)
    done = judged.run("propose", "--title", "Renamed", "--set", "--work=0.3").expect(1)
    assert "gpudebug reopen 3" in done.err
    after = judged.text.partition("## Hypotheses")[2]
    assert after.replace("- **Accepted**: 1\n", "") == before


def test_what_is_accepted_is_part_of_the_baseline(adopted: Campaign) -> None:
    before = adopted.text
    told = {
        "hypothesis 1 already (accepted already)": "--set --lr=0.2",
        "--set lr=0.2 is accepted already, with hypothesis 1": "--set lr=0.2 --set new=1 --compound",
        "hypothesis 2 already (accepted already)": "--patch hypotheses/patches/workers.patch",
        "workers.patch is accepted already, with hypothesis 2": (
            "--patch hypotheses/patches/workers.patch --set new=1 --compound"
        ),
    }
    for said, change in told.items():
        with pytest.raises(Duplicate, match=re.escape(said)):
            propose(adopted.folder, title="Again", description="", method="", change=change_of(change))
    assert adopted.text == before
    assert (
        propose(
            adopted.folder,
            title="Back",
            description="",
            method="",
            change=change_of("--set --lr=0.1"),
        ).hypothesis
        == 5
    )


def test_an_acceptance_by_hand_stands_in_nobodys_way(told: Campaign) -> None:
    by_hand = "- **Intervention**: {}\n- **Status**: VALIDATED\n- **Accepted**: 1\n"
    told.add(f"\n### Hypothesis 7: Code\n{by_hand.format('--code')}")
    told.add(f"\n### Hypothesis 8: Flag\n{by_hand.format('--set --work=0.9')}")
    assert told.propose("--set --work=0.9 --set --lr=0.7 --compound")["hypothesis"] == 9


def test_a_title_like_another_is_a_warning(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    first = campaign.propose("--set --work=0.3 --description One.", "The loader waits for shards")
    assert first["notes"] == []
    second = campaign.propose("--set --lr=0.4 --description Two.", "Waiting loader, shards")
    (note,) = second["notes"]
    assert note == "its title is like that of hypothesis 1 (UNTESTED): The loader waits for shards"
    assert campaign.propose("--set --steps=9 --description Three.", "Clocks are throttled")["notes"] == []
    words = ("--title", "The loader waits for shards", "--description", "Four.", "--method", "Try it.")
    assert campaign.json("propose", *words, "--sweep=--duration=1,2")["notes"] == []


HOSTILE = {
    "A cause" * 200_000: 200,
    "\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link": 8,
    "\u202egnol\u202c\u2066x\u2069": 5,
    "# **bold** `code`\n## Hypothesis 9: forged\n- **Status**: VALIDATED": 200,
}


def test_any_title_is_one_bounded_line(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    for number, (title, longest) in enumerate(HOSTILE.items(), 1):
        answer = propose(
            campaign.folder,
            title=title,
            description=title,
            method=title,
            change=change_of(f"--set --n{number}=1"),
        )
        assert len(answer.title) <= longest
        assert answer.title.isprintable()
    entries = parse(campaign.progress.read_bytes(), "p").hypotheses
    assert [(e.number, str(e.status)) for e in entries] == [(n, "UNTESTED") for n in range(1, 5)]
    assert len(campaign.text) < 4 * (200 + 2 * 2000 + 200)
    for title in ("", "  ", "\x1b[31m\x1b[0m", "\u202e\u2066", "###"):
        with pytest.raises(UsageError, match="a hypothesis needs a title"):
            propose(
                campaign.folder,
                title=title,
                description="",
                method="",
                change=change_of("--set --z=1"),
            )


def test_a_random_value_of_the_environment_is_written_nowhere_whatever_its_name(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    word, env = "Xk29dkfj39dk20pq7", {"LOGIN_OF_MINE": "Xk29dkfj39dk20pq7"}
    title, why = f"Log in with {word}", f"It waits for {word}."
    asked = ("--title", title, "--description", why, "--method", word, "--set", "--lr=0.2")
    assert word not in campaign.run("propose", *asked, env=env).expect(0).out
    assert word not in campaign.text
    campaign.progress.write_text(campaign.text.replace("Log in with", f"Log in with {word}"))
    for command in (("status",), ("show", "1"), ("status", "--json"), ("show", "1", "--json")):
        assert word not in campaign.run(*command, env=env).expect(0).out


def test_code_is_proposed_and_asked_for(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    assert campaign.propose("--code --description It.")["notes"] == []
    assert campaign.propose("--code", "Another cause")["intervention"] == "--code"
    assert "--set" in campaign.propose("--compound --code --set --work=0.7", "A third one")["intervention"]
    done = campaign.run("propose", "--title", "x", "--compound", "--code", "--set", "--work=0.2").expect(1)
    assert "no effect" in done.err


SHORT = "import argparse\np = argparse.ArgumentParser()\np.add_argument('-j', '--workers', type=int)\n"


def test_a_long_flag_is_named_as_the_command_names_it(tmp_path: Path) -> None:
    campaign = make_campaign(
        tmp_path / "repo", command="python3 load.py -j 0", files={"load.py": SHORT}, config="locked: []\n"
    )
    texts = ("--description", "They are few.", "--method", "Waits fall.")
    words = ("propose", "--title", "Workers", *texts, "--set", "--workers=4")
    answer = campaign.json(*words)
    assert answer["intervention"] == "--set -j=4"
    assert answer["notes"] == ["the command spells --workers as -j"]
    assert "is hypothesis 1 already" in campaign.run(*words).expect(1).err


def test_a_lock_covers_the_short_name(tmp_path: Path) -> None:
    campaign = make_campaign(
        tmp_path / "repo",
        command="python3 load.py -j0",
        files={"load.py": SHORT},
        config="locked: [workers]\n",
    )
    refused = campaign.run("propose", "--title", "Workers", "--set", "-j=4").expect(1)
    assert "changes workers, which gpudebug.yaml locks" in refused.err
