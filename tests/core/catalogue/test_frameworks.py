"""What a command line gives away: its framework, its output folder, how often it logs."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.places import DATA

from gpudebug.core.catalogue import frameworks
from gpudebug.core.text import shell_words
from gpudebug.engine.run import adapters

KNOWN = adapters.known()
SEED = shell_words.split((DATA / "seed004_command.sh").read_text())[-1].value
LEROBOT = "lerobot-train --policy.type=act --steps=200 --batch_size=8 --output_dir=outputs/x"
HF = "python run.py --per_device_train_batch_size 8 --bf16 true --output_dir out --max_steps 300"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (LEROBOT, "lerobot"),
        (SEED, "lerobot"),
        ("python -m lerobot.scripts.train --steps=5", "lerobot"),
        ("python .venv/lib/lerobot/scripts/lerobot_train.py --steps=5", "lerobot"),
        ("accelerate launch $X --policy.type=act --dataset.repo_id=a/b", "lerobot"),
        (HF, "hf_trainer"),
        ("llamafactory-cli train cfg.yaml", "llamafactory"),
        ("tune run lora_finetune_single_device --config x", "torchtune"),
        ("python train.py fit --trainer.max_steps=5 --trainer.accelerator cpu", "lightning"),
        ("python -m rl_zoo3.train --algo ppo --env CartPole-v1", "sb3"),
        ("python train.py --data-dir d --model resnet50 --opt sgd --amp", "timm"),
        ("python train.py --block_size=64 --n_layer=4 --max_iters=200", "nanogpt"),
        ("yolo train model=x.pt", "ultralytics"),
        ("python train.py --lr 1", None),
        ("python train.py --mode tune", None),
        ("python train.py --output runs/tune --arch yolo", None),
        ("python train.py --model x --opt sgd", None),
        ("python train.py --output_dir x --model_name_or_path y", None),
    ],
)
def test_frameworks_are_recognised(command: str, name: str | None) -> None:
    found = frameworks.recognise(shlex.split(command), KNOWN)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        (LEROBOT, LEROBOT + "/{run}"),
        ("t  --output-dir 'my out' \\\n --x=1", "t  --output-dir 'my out/{run}' \\\n --x=1"),
        ('t --save_dir="a b/" --x', 't --save_dir="a b/{run}" --x'),
        ("t --default_root_dir=a --logdir=b", "t --default_root_dir=a --logdir=b/{run}"),
        ("t trainer.default_root_dir=a", "t trainer.default_root_dir=a/{run}"),
        ("python run.py --trainer.logger.save_dir=lg", "python run.py --trainer.logger.save_dir=lg/{run}"),
        ("t --out_dir=a --out_dir=b", "t --out_dir=a --out_dir=b/{run}"),
        ("t --output_dir=outputs/{run}", None),
        ("t --output_dir={run_dir}/x", None),
        ("t 'hydra.run.dir=o/${now:%H}'", None),
        ("t --output=result.csv", None),
        ("t --lr=1", None),
        ("t --output_dir", None),
        ("t --output_dir='x", None),
        ("", None),
    ],
)
def test_a_fixed_output_folder_is_made_new_for_each_run(command: str, offered: str | None) -> None:
    assert frameworks.offer_run(command, KNOWN) == offered


def test_the_seeds_command_changes_in_one_place() -> None:
    offered = frameworks.offer_run(SEED, KNOWN)
    assert offered == SEED.replace("test_hypothesis_N", "test_hypothesis_N/{run}")


@pytest.mark.parametrize(
    ("command", "steps", "advice"),
    [
        (LEROBOT, None, ("--log_freq", "20")),
        (SEED, None, ("--log_freq", "20")),
        (LEROBOT, 1000, ("--log_freq", "100")),
        (LEROBOT, 5, ("--log_freq", "1")),
        (LEROBOT + " --log_freq=20", None, None),
        (LEROBOT + " --log_freq=50", None, ("--log_freq", "20")),
        (LEROBOT.replace("=200", "=100000"), None, None),
        ("lerobot-train --policy.type=act", None, None),
        (HF, None, ("--logging_steps", "30")),
        (HF + " --logging_steps 10", None, None),
        ("python t.py trainer.max_steps=100 trainer.devices=1", None, ("trainer.log_every_n_steps", "10")),
        ("python train.py --steps=200", None, None),
    ],
)
def test_how_often_to_log(command: str, steps: int | None, advice: tuple[str, str] | None) -> None:
    found = frameworks.log_advice(shlex.split(command), KNOWN, steps)
    assert (found and found[:2]) == advice


@given(st.integers(10, 10**6))
def test_the_advice_gives_ten_lines_or_more(steps: int) -> None:
    argv = ["lerobot-train", f"--steps={steps}"]
    advice = frameworks.log_advice(argv, KNOWN)
    interval = int(advice[1]) if advice else 200
    assert steps // interval >= 10


@pytest.mark.parametrize(
    ("command", "locks"),
    [
        (SEED, ("--batch_size", "--policy.chunk_size")),
        (HF, ("--per_device_train_batch_size",)),
        ("t --batch-size 4", ("--batch-size",)),
        ("t --lr 4", ()),
    ],
)
def test_knobs_worth_locking(command: str, locks: tuple[str, ...]) -> None:
    assert frameworks.suggested_locks(shlex.split(command), KNOWN) == locks


@given(
    st.lists(
        st.text(max_size=12)
        | st.sampled_from(["--output_dir", "--output_dir=x", "lerobot-train", "--steps=7"])
    )
)
def test_any_command_can_be_looked_at(argv: list[str]) -> None:
    frameworks.recognise(argv, KNOWN)
    frameworks.log_advice(argv, KNOWN)
    text = shlex.join(argv)
    offered = frameworks.offer_run(text, KNOWN)
    if offered is not None:
        assert offered.replace("/{run}", "", 1) == text or offered.replace("{run}", "", 1) == text
        assert len(shlex.split(offered)) == len(argv)


@given(st.text(max_size=40))
def test_any_text_can_be_offered(text: str) -> None:
    offered = frameworks.offer_run(text, KNOWN)
    assert offered is None or "{run}" in offered


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("train.py --steps=200", "--steps"),
        ("train.py --num_steps=200", "--num_steps"),
        ("train.py --trainer.max_steps 200", "--trainer.max_steps"),
        ("ppo.py --num-envs 1 --num-steps 512 --total-timesteps 24576", "--total-timesteps"),
        ("ppo.py --num-envs 1 --num-steps 512", None),
        ("train.py --epochs=3", "--epochs"),
        ("train.py --epochs=3 --max-steps=500", "--max-steps"),
        ("train.py --num_train_epochs=3 --max_steps=-1 --eval_steps=10", "--num_train_epochs"),
        ("a2c.py --num-updates 300 --nsteps 5 --epochs 4", "--num-updates"),
        ("ppo.py --num-envs 4 --num-steps 512 --update-epochs 4", None),
        ("ppo.py --env CartPole-v1 --n-epochs 10", None),
        ("fit.py --n_iter=300", "--n_iter"),
    ],
)
def test_a_rollout_is_not_how_long_a_training_is(command: str, name: str | None) -> None:
    option = frameworks.length_option(("python", *command.split()), {})
    assert (option.name if option else None) == name


def test_a_short_name_says_how_long_a_training_is() -> None:
    option = frameworks.length_option(["python", "-m", "rl_zoo3.train", "--algo", "ppo", "-n", "5000"], KNOWN)
    assert option is not None
    assert (option.name, option.value) == ("-n", "5000")
