"""What would test a cause in one program: flags of its framework, knobs of its own, variables, code."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from tests.support.causes import cause

from gpudebug.core.catalogue import frameworks
from gpudebug.core.catalogue.model import CatalogueIntervention, Cause, Knob
from gpudebug.core.catalogue.offers import KnownCommand, Offers, interventions_for
from gpudebug.core.catalogue.program import look
from gpudebug.core.change import intervention
from gpudebug.engine.run import adapters, catalogue

KNOWN = adapters.known()
LEROBOT = "lerobot-train --policy.type=act --steps=200"
OWN = "import argparse\np.add_argument('--workers', type=int, default=0)"
SHORT = "import argparse\np.add_argument('-j', '--workers', default=4, type=int)"
TRAINER = """
from transformers import Trainer, TrainingArguments
args = TrainingArguments(output_dir="o", max_steps=200)
"""


def offered(cause: Cause, command: str, source: str | None = None, **more: Any) -> Offers:
    argv = shlex.split(command)
    program = look("train.py", [source]) if source else None
    found = frameworks.find(argv, KNOWN, program)
    known = KnownCommand(argv, more.pop("env", {}), found, more.pop("version", None), program)
    return interventions_for(cause, known, **more)


def tried_by(**interventions: dict[str, Any]) -> Cause:
    made = {name: CatalogueIntervention.model_validate(fields) for name, fields in interventions.items()}
    return cause().model_copy(update={"interventions": made})


def changes(found: Offers) -> list[tuple[str | None, str]]:
    return [(offer.change, offer.by) for offer in found.offers]


@pytest.mark.parametrize(
    ("command", "source", "expected"),
    [
        (LEROBOT, None, [("--set num_workers=4", "lerobot"), (None, "any")]),
        (LEROBOT + " --num_workers=4", None, [(None, "any")]),
        (LEROBOT + " --num_workers=0", None, [("--set num_workers=4", "lerobot"), (None, "any")]),
        (LEROBOT + " --num_workers=8", None, [(None, "any")]),
        ("python train.py", OWN, [("--set --workers=4", "knob"), (None, "any")]),
        ("python train.py --workers=4", OWN, [(None, "any")]),
        ("python train.py -j 0", SHORT, [("--set -j=4", "knob"), (None, "any")]),
        ("python train.py -j0 data", SHORT, [("--set -j=4", "knob"), (None, "any")]),
        ("python train.py -j 4", SHORT, [(None, "any")]),
        ("python train.py", None, [(None, "any")]),
        ("bash -c 'python train.py --workers=0'", None, [(None, "any")]),
    ],
)
def test_the_framework_first_then_knobs_then_code(
    command: str, source: str | None, expected: list[tuple[str | None, str]]
) -> None:
    found = offered(cause(), command, source)
    assert changes(found) == expected
    assert found.offers[-1].instructions == "Make it fast."


def test_every_change_can_be_made() -> None:
    for offer in offered(cause(), LEROBOT).offers:
        if offer.change:
            made = intervention.parse(offer.change).apply(shlex.split(LEROBOT), {})
            assert made.argv[-1] == "--num_workers=4"


@pytest.mark.parametrize(
    ("version", "flag", "expected", "refused"),
    [
        ("0.5.1", "prefetch_factor", [], "LeRobot 0.5.1 has no prefetch_factor: the flag exists since 0.6"),
        ("0.6.0", "prefetch_factor", ["--set prefetch_factor=8"], None),
        (None, "prefetch_factor", ["--set prefetch_factor=8"], None),
        ("0.5.1", "env_eval_freq", ["--set eval_freq=8"], None),
        ("0.6.0", "env_eval_freq", ["--set env_eval_freq=8"], None),
    ],
)
def test_the_version_decides_of_the_flag(
    version: str | None, flag: str, expected: list[str], refused: str | None
) -> None:
    found = offered(tried_by(lerobot={"set": {flag: 8}}), LEROBOT, version=version)
    assert [o.change for o in found.offers] == expected
    assert list(found.refused) == ([refused] if refused else [])


def test_the_command_shows_the_former_name() -> None:
    found = offered(tried_by(lerobot={"set": {"env_eval_freq": 8}}), LEROBOT + " --eval_freq=2")
    assert [o.change for o in found.offers] == ["--set eval_freq=8"]


def test_a_range_of_versions_is_kept() -> None:
    made = tried_by(lerobot={"set": {"a": 1}, "versions": ">=0.7", "code": "Write it."})
    found = offered(made, LEROBOT, version="0.6")
    assert (found.offers, found.refused) == ((), ("LeRobot 0.6 is not >=0.7",))


def test_options_of_a_framework_that_stand_in_code_are_written_there() -> None:
    found = offered(
        tried_by(hf_trainer={"set": {"dataloader_num_workers": 4, "bf16": True}}), "python train.py", TRAINER
    )
    assert [o.change for o in found.offers] == [None]
    assert found.offers[0].instructions == (
        "In train.py, set dataloader_num_workers=4, bf16=True where DPOConfig or GRPOConfig or SFTConfig or "
        "Seq2SeqTrainingArguments or TrainingArguments is made."
    )


@pytest.mark.parametrize(
    ("passed", "set_"),
    [
        ("", "log_every_n_steps=500"),
        ("log_every_n_steps=2", "log_every_n_steps=20"),
        ("log_every_n_steps=EVERY", "log_every_n_steps=30"),
        ("log_every_n_steps=every()", None),
        ("log_every_n_steps=cfg.every", None),
        ("**more", None),
    ],
)
def test_what_code_passes_is_not_taken_for_the_default(passed: str, set_: str | None) -> None:
    cause = tried_by(lightning={"set": {}}).model_copy(update={"interventions": {}})
    knob = {"names": ["log_every_n_steps"], "direction": "up", "factor": 10, "side_work": True}
    cause = cause.model_copy(update={"knobs": (Knob.model_validate(knob),)})
    source = f"import lightning as L\nEVERY = 3\nL.Trainer({passed})"
    written = [o.instructions for o in offered(cause, "python train.py", source).offers]
    assert written == ([] if set_ is None else [f"In train.py, set {set_} where Trainer is made."])


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("n_envs", "where make_vec_env is called."),
        ("batch_size", "where A2C or DDPG or DQN or PPO or SAC or TD3 is made."),
    ],
)
def test_an_argument_is_set_at_the_call_that_takes_it(name: str, where: str) -> None:
    source = "from stable_baselines3 import PPO"
    (offer,) = offered(tried_by(sb3={"set": {name: 8}}), "python train.py", source).offers
    assert offer.instructions == f"In train.py, set {name}=8 {where}"


def test_options_that_no_command_takes_are_written() -> None:
    made = tried_by(sb3={"set": {"n_envs": 8}})
    found = offered(made, "python -m rl_zoo3.train --algo ppo --env CartPole-v1")
    assert [o.change for o in found.offers] == [None]
    assert "n_envs=8" in (found.offers[0].instructions or "")


def test_variables_come_last_of_what_needs_no_code() -> None:
    made = tried_by(
        env={"env": {"OMP_NUM_THREADS": "1"}}, any={"env": {"KMP_BLOCKTIME": "1"}, "code": "Write it."}
    )
    found = offered(made, "python train.py", OWN)
    assert changes(found) == [
        ("--env KMP_BLOCKTIME=1", "any"),
        ("--set --workers=4", "knob"),
        ("--env OMP_NUM_THREADS=1", "env"),
        (None, "any"),
    ]
    again = offered(made, "python train.py", OWN, env={"OMP_NUM_THREADS": "1", "KMP_BLOCKTIME": "1"})
    assert changes(again) == [("--set --workers=4", "knob"), (None, "any")]


def test_a_bare_flag_stands_without_a_value() -> None:
    command = "python train.py --data-dir d --model resnet50 --opt sgd"
    found = offered(tried_by(timm={"set": {"pin-mem": True}}), command)
    assert [o.change for o in found.offers] == ["--set --pin-mem"]


def test_a_lock_covers_every_name_of_an_option() -> None:
    found = offered(cause(), "python train.py -j 0", SHORT, locked=["--workers"])
    assert changes(found) == [(None, "any")]
    assert found.refused == ("--set -j=4 touches --workers, which is locked",)


def test_locked_knobs_are_left_alone() -> None:
    found = offered(cause(), LEROBOT, locked=["--num_workers"])
    assert changes(found) == [(None, "any")]
    assert found.refused == ("--set num_workers=4 touches --num_workers, which is locked",)


@pytest.mark.parametrize(
    ("flag", "command", "locked"),
    [
        ("ims_per_batch", "python train.py --ims-per-batch=8", "--batch_size"),
        ("work", "python train.py --workers=0", "--workers"),  # argparse takes it for --workers.
    ],
)
def test_what_propose_refuses_as_locked_is_not_offered(flag: str, command: str, locked: str) -> None:
    made = tried_by(any={"set": {f"--{flag}": 4}})
    [change, *_] = changes(offered(made, command))
    found = offered(made, command, locked=[locked])
    assert found.offers == ()
    assert f"{change[0]} touches {locked}, which is locked" in found.refused


@pytest.mark.parametrize(
    ("cause_id", "command", "source", "cores", "change"),
    [
        ("dl-no-workers", "python train.py", OWN, 2, "--set --workers=2"),
        ("dl-no-workers", "python train.py", OWN, 32, "--set --workers=4"),
        ("dl-no-workers", "python train.py", OWN, None, "--set --workers=4"),
        ("dl-no-workers", LEROBOT + " --num_workers=0", None, 3, "--set num_workers=2"),
        ("dl-no-workers", "nnUNetv2_train 1 2d 0", None, 2, "--env nnUNet_n_proc_DA=2"),
        ("dl-few-workers", LEROBOT + " --num_workers=4", None, 6, "--set --num_workers=6"),
        ("dl-few-workers", LEROBOT + " --num_workers=4", None, 4, None),
        ("dl-few-workers", LEROBOT + " --num_workers=4", None, 8, "--set num_workers=8"),
        ("dl-pipeline", "nnUNetv2_train 1 2d 0", None, 2, None),
        ("env-step", "python train.py --n_envs=2", None, 2, "--set --n_envs=8"),
    ],
)
def test_no_more_hands_are_asked_for_than_there_are_cores(
    cause_id: str, command: str, source: str | None, cores: float | None, change: str | None
) -> None:
    env = {"nnUNet_n_proc_DA": "0" if cause_id == "dl-no-workers" else "2"}
    found = offered(catalogue.load(None).cause(cause_id), command, source, cores=cores, env=env)
    assert found.offers[0].change == change


def test_instructions_ask_for_as_many_workers_as_the_change_would() -> None:
    for cores, said in ((2, "`num_workers=2`"), (16, "`num_workers=4`")):
        *_, last = offered(catalogue.load(None).cause("dl-no-workers"), "python t.py", cores=cores).offers
        assert said in str(last.instructions)
        assert "`prefetch_factor=4`" in str(last.instructions)


def test_a_variable_that_is_not_set_is_not_set_to_nothing() -> None:
    made = tried_by(env={"env": {"CUDA_LAUNCH_BLOCKING": "0"}})
    assert offered(made, LEROBOT).refused == ("CUDA_LAUNCH_BLOCKING is not set",)
    found = offered(made, LEROBOT, env={"CUDA_LAUNCH_BLOCKING": "1"})
    assert changes(found) == [("--env CUDA_LAUNCH_BLOCKING=0", "env")]


def test_of_several_parts_those_with_an_effect_are_offered() -> None:
    made = tried_by(lerobot={"set": {"a": 1, "b": 2}, "unset": ["c"]})
    assert changes(offered(made, LEROBOT + " --a=1"))[0][0] == "--set b=2"
    assert changes(offered(made, LEROBOT + " --c"))[0][0] == "--compound --set a=1 --set b=2 --unset c"
    found = offered(made, LEROBOT + " --a=1 --b=2")
    assert (found.offers, len(found.refused)) == ((), 3)


def test_of_several_flags_those_that_the_version_has_are_offered() -> None:
    made = tried_by(lerobot={"set": {"num_workers": 2, "prefetch_factor": 2}})
    found = offered(made, LEROBOT, version="0.5.1")
    assert changes(found) == [("--set num_workers=2", "lerobot")]
    assert found.refused == ("LeRobot 0.5.1 has no prefetch_factor: the flag exists since 0.6",)


@pytest.mark.parametrize(
    ("interventions", "command", "expected"),
    [
        ({"any": {"unset": ["lr"]}}, "python train.py --lr=1", [("--unset lr", "any")]),
        ({"any": {"unset": ["lr"]}}, "python train.py", []),
        ({"env": {"code": "Set it at home."}}, "python train.py", [(None, "env")]),
        ({"any": {"env": {"KMP_BLOCKTIME": "0"}}}, "python train.py", [("--env KMP_BLOCKTIME=0", "any")]),
        ({"env": {"env": {"CUDA_LAUNCH_BLOCKING": "0"}}}, "python train.py", []),
    ],
)
def test_whatever_a_file_may_say_is_offered(
    interventions: dict[str, Any], command: str, expected: list[tuple[str | None, str]]
) -> None:
    assert changes(offered(tried_by(**interventions), command)) == expected


def test_a_variable_of_a_package_is_offered_where_that_package_is_spoken_of() -> None:
    made = tried_by(env={"needs": ["wandb"], "env": {"WANDB_MODE": "offline"}}, any={"code": "Write it."})
    offline = ("--env WANDB_MODE=offline", "env")
    assert offline not in changes(offered(made, "python train.py", OWN))
    assert offline in changes(offered(made, "python train.py", "import wandb\nwandb.init()\n" + OWN))
    assert offline in changes(offered(made, "python train.py --report_to=wandb", OWN))
    assert offline not in changes(offered(made, "python train.py"))


@pytest.mark.parametrize(
    ("calls", "is_offered"),
    [
        ([("trainer.py wandb_run.py wandb", 3.0), ("pyplot.py savefig", 1.0)], True),
        ([("trainer.py wandb", 1.0), ("pyplot.py savefig matplotlib", 3.0)], False),
        ([("pyplot.py savefig matplotlib", 3.0)], False),
        ([], True),
    ],
)
def test_a_change_is_offered_where_the_time_goes(calls: list[tuple[str, float]], is_offered: bool) -> None:
    made = tried_by(env={"needs": ["wandb"], "env": {"WANDB_MODE": "offline"}})
    seen = tuple((frozenset(words.split()), seconds) for words, seconds in calls)
    program = look("train.py", ["import wandb\nimport matplotlib\n"])
    found = interventions_for(made, KnownCommand(["python", "train.py"], program=program, calls=seen))
    assert bool(found.offers) is is_offered
    assert is_offered or "needs wandb, which is not seen here" in found.refused[0]


@pytest.mark.parametrize(
    ("cause_id", "env", "change"),
    [
        ("dl-no-workers", {"nnUNet_n_proc_DA": "0"}, "--env nnUNet_n_proc_DA=4"),
        ("dl-no-workers", {"nnUNet_n_proc_DA": "8"}, None),
        # Its default is 12.
        ("dl-no-workers", {}, None),
        ("dl-pipeline", {"nnUNet_n_proc_DA": "2"}, "--env nnUNet_n_proc_DA=4"),
        ("dl-pipeline", {}, "--env nnUNet_n_proc_DA=24"),
    ],
)
def test_a_frameworks_variable_is_an_option_with_its_default(
    cause_id: str, env: dict[str, str], change: str | None
) -> None:
    found = offered(catalogue.load(None).cause(cause_id), "nnUNetv2_train 3 3d_fullres 0", env=env)
    assert found.offers[0].change == change


def test_what_the_command_sets_comes_before_a_default_of_the_frameworks() -> None:
    """Lightning's `val_check_interval` decides, and `check_val_every_n_epoch` is 1 all the same."""
    command = (
        "python train.py --trainer.max_steps=2000 --trainer.accelerator=cpu --trainer.val_check_interval=20"
    )
    source = "from lightning.pytorch.cli import LightningCLI\nLightningCLI()"
    knob = {
        "names": [r"(\w+\.)*(check_val_every_n_epoch|val_check_interval)"],
        "direction": "up",
        "factor": 5,
        "side_work": True,
    }
    made = cause().model_copy(update={"knobs": (Knob.model_validate(knob),), "interventions": {}})
    assert changes(offered(made, command, source))[0] == ("--set --trainer.val_check_interval=100", "knob")
