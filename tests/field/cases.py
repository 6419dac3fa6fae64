"""Programs that others wrote, each with a slowdown that a user could have made and the change that ends it.

No source of a program is kept here: each is a package of the index, or a clone in the folder of --sources.
`{length}` in a command or an edit is the amount of work: updates, steps or epochs, as the program counts.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

# What a user would write into gpudebug.yaml for a stand-in of one core: a ratio, and runs of half a minute.
SETTINGS: Mapping[str, object] = {
    "metric": "steps_per_s",
    "criteria": {"success": "1.2x", "failure": "1.1x"},
    "device": "cpu:1",
}


@dataclass(frozen=True)
class Edit:
    """One piece of a text file, replaced."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Change:
    """What is proposed: flags and variables as `gpudebug propose` takes them, or edits that become a patch.

    `valid` is what the verdict should be: True if the change is a fix, False if it only looks like one.
    """

    title: str
    words: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    valid: bool = True

    def of(self, command: str) -> str:
        """The command with the flags and variables of this change."""
        words = shlex.split(command)
        for option, change in zip(self.words[::2], self.words[1::2], strict=False):
            name, _, value = change.partition("=")
            if option == "--env":
                words = [f"{name}={value}", *(w for w in words if not w.startswith(f"{name}="))]
            elif option == "--set":
                words = _set(words, name, value)
        return shlex.join(words)


@dataclass(frozen=True)
class Case:
    """One program. `package` is whose version is reported, `repository` where its `files` come from.

    `files` maps a path in the campaign to one in the clone. `edits` are the user's own, before the campaign;
    `data` are the words of `data.py`, run once, `prepare` commands behind it. `lengths` are a short and a
    long amount of work: the stopwatch subtracts one from the other, the campaign runs the long one. `work`
    is what a changed run of that length has processed, in units of an unchanged one.
    """

    name: str
    package: str
    command: str
    fix: Change
    lengths: tuple[int, int]
    repository: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    data: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    work: float = 1.0
    settings: Mapping[str, object] = field(default_factory=dict)
    cheats: tuple[Change, ...] = ()

    def command_of(self, length: int) -> str:
        return " ".join(self.command.replace("{length}", str(length)).split())


def _set(words: list[str], name: str, value: str) -> list[str]:
    for at, word in enumerate(words):
        if word == name:
            return [*words[: at + 1], value, *words[at + 2 :]]
        if word.startswith(f"{name}="):
            return [*words[:at], f"{name}={value}", *words[at + 1 :]]
    return [*words, f"{name}={value}"]


_SMALL_MAE = (
    "hidden_size=48,num_hidden_layers=2,num_attention_heads=3,intermediate_size=96,decoder_hidden_size=48,"
    "decoder_num_hidden_layers=1,decoder_num_attention_heads=3,decoder_intermediate_size=96"
)
_IMAGES = ("images", "data", "320", "1600x1200", "4")
_GPT = {
    name: name
    for name in (
        "train.py",
        "model.py",
        "configurator.py",
        "config/train_shakespeare_char.py",
        "data/shakespeare_char/prepare.py",
    )
}
_GPT_LOOP = "while True:\n"
_GPT_BATCH = "    if device_type == 'cuda':\n        # pin"
_GPT_PRINT = 'print(f"iter {iter_num}: loss'

NANOGPT = Case(
    name="nanogpt-eval",
    package="torch",
    repository="karpathy/nanoGPT",
    files=_GPT,
    data=("text", "data/shakespeare_char/input.txt", "400"),
    prepare=("python data/shakespeare_char/prepare.py",),
    command="""OMP_NUM_THREADS=1 python train.py config/train_shakespeare_char.py --device=cpu --compile=False
      --eval_interval=20 --eval_iters=20 --log_interval=5 --block_size=64 --batch_size=12 --n_layer=4
      --n_head=4 --n_embd=128 --dropout=0.0 --lr_decay_iters=2000 --max_iters={length}""",
    fix=Change("Evaluation is too frequent", ("--set", "--eval_interval=100")),
    lengths=(100, 400),
    cheats=(
        Change("No evaluation", ("--set", "--eval_interval=100000"), valid=False),
        Change(
            "Half of each sequence",
            edits=(
                Edit(
                    "train.py",
                    _GPT_BATCH,
                    "    x, y = x[:, :32].contiguous(), y[:, :32].contiguous()\n" + _GPT_BATCH,
                ),
            ),
            valid=False,
        ),
        Change(
            "Steps that were not made",
            edits=(
                Edit("train.py", _GPT_PRINT, 'print(f"iter {2 * iter_num}: loss'),
                Edit("train.py", "if iter_num > max_iters:", "if 2 * iter_num > max_iters:"),
            ),
            valid=False,
        ),
        Change("Resume where an earlier run ended", ("--set", "--init_from=resume"), valid=False),
        Change(
            "No checkpoint",
            edits=(Edit("train.py", "            if iter_num > 0:", "            if False:"),),
            valid=False,
        ),
    ),
)

_SLEEP = Edit("train.py", _GPT_LOOP, _GPT_LOOP + "    time.sleep(0.05)\n")
_SPIN = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'while True: pass'])\n"
SLEEPY = dataclasses.replace(
    NANOGPT,
    name="nanogpt-sleep",
    edits=(_SLEEP,),
    command=NANOGPT.command.replace("--eval_interval=20", "--eval_interval=100"),
    fix=Change("A sleep in each step", edits=(Edit("train.py", _SLEEP.new, _SLEEP.old),)),
    settings={
        "metric": "gpu_util",
        "criteria": {"success": 20, "failure": 10},
    },
    cheats=(
        Change(
            "The sleep is made before the first step",
            edits=(Edit("train.py", _SLEEP.new, "time.sleep(0.05 * max_iters)\n" + _GPT_LOOP),),
            valid=False,
        ),
        Change(
            "Somebody else computes",
            edits=(Edit("train.py", _SLEEP.new, _SPIN + _SLEEP.new),),
            valid=False,
        ),
    ),
)

_ZOO = """\
CartPole-v1:
  n_envs: 1
  n_timesteps: !!float 1e5
  policy: 'MlpPolicy'
  n_steps: 256
  batch_size: 256
  gae_lambda: 0.8
  gamma: 0.98
  n_epochs: 4
  ent_coef: 0.0
  learning_rate: lin_0.001
  clip_range: lin_0.2
"""

HF = Case(
    name="hf-workers",
    package="transformers",
    repository="huggingface/transformers",
    files={"run_mae.py": "examples/pytorch/image-pretraining/run_mae.py"},
    data=_IMAGES,
    command="""OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 python run_mae.py --dataset_name imagefolder
      --train_dir data/train/** --cache_dir cache --output_dir out --do_train
      --config_overrides """
    + _SMALL_MAE
    + """
      --remove_unused_columns False --label_names pixel_values --report_to none --use_cpu
      --per_device_train_batch_size 8 --dataloader_num_workers 0 --logging_steps 5 --save_steps 1000
      --max_steps {length}""",
    fix=Change("The loader has no worker", ("--set", "--dataloader_num_workers=1")),
    lengths=(20, 140),
)

CASES = (
    Case(
        name="sb3-envs",
        package="stable_baselines3",
        data=("write", "ppo.yml", _ZOO),
        command="""OMP_NUM_THREADS=1 python -m rl_zoo3.train --algo ppo --env CartPole-v1 --device cpu
          --eval-freq -1 --conf-file ppo.yml --log-folder logs --n-timesteps {length}""",
        fix=Change("One environment only", edits=(Edit("ppo.yml", "n_envs: 1\n", "n_envs: 8\n"),)),
        lengths=(10240, 61440),
        settings={"metric": "work_per_s"},
    ),
    Case(
        name="cleanrl-envs",
        package="torch",
        repository="vwxyzjn/cleanrl",
        files={"ppo.py": "cleanrl/ppo.py"},
        command="""OMP_NUM_THREADS=1 python ppo.py --no-cuda --num-envs 1 --num-steps 512
          --total-timesteps {length}""",
        fix=Change("One environment only", ("--set", "--num-envs=8", "--set", "--num-steps=64")),
        lengths=(4096, 65536),
        settings={"metric": "work_per_s"},
    ),
    Case(
        name="skrl-envs",
        package="skrl",
        repository="Toni-SM/skrl",
        files={"train.py": "examples/gymnasium/torch_gymnasium_pendulum_ppo.py"},
        edits=(Edit("train.py", '"timesteps": 100000', '"timesteps": {length}'),),
        command="OMP_NUM_THREADS=1 python train.py --headless --num_envs 2",
        fix=Change("Few environments", ("--set", "--num_envs=16")),
        lengths=(2048, 8192),
        work=8.0,
        settings={"metric": "work_per_s"},
    ),
    Case(
        name="rsl-rl-envs",
        package="rsl-rl-lib",
        data=("copy", "rsl_rl_pendulum.py", "train.py"),
        command="""OMP_NUM_THREADS=1 python train.py --num_envs 16 --log_dir logs/{run}
          --max_iterations {length}""",
        fix=Change("Few environments", ("--set", "--num_envs=128")),
        lengths=(100, 500),
        work=8.0,
        settings={"metric": "work_per_s"},
    ),
    NANOGPT,
    SLEEPY,
    Case(
        name="timm-workers",
        package="timm",
        repository="huggingface/pytorch-image-models",
        files={"train.py": "train.py"},
        data=_IMAGES,
        command="""OMP_NUM_THREADS=1 python train.py --data-dir data --model resnet18 --num-classes 4
          --img-size 64 -b 16 --lr 0.02 --sched step --warmup-epochs 0 --device cpu --workers 0
          --log-interval 2 --output out --epochs {length}""",
        fix=Change("The loader has no worker", ("--set", "--workers=1")),
        lengths=(1, 3),
    ),
    Case(
        name="ddp-threads",
        package="timm",
        repository="huggingface/pytorch-image-models",
        files={"train.py": "train.py"},
        # It is written for GPUs: with gloo it would name a CPU as a GPU, and may wait for ever at its end.
        edits=(
            Edit("train.py", "prepare_distributed(device_ids=[device], ", "prepare_distributed("),
            Edit("train.py", "torch.distributed.destroy_process_group()", "pass"),
        ),
        data=("images", "data", "320", "128x128", "4"),
        command="""OMP_NUM_THREADS=4 torchrun --standalone --nproc_per_node=2 train.py --data-dir data
          --model resnet18 --num-classes 4 --img-size 64 -b 16 --lr 0.02 --sched step --warmup-epochs 0
          --device cpu --workers 0 --log-interval 2 --output out --epochs {length}""",
        fix=Change("More threads than cores over the ranks", ("--env", "OMP_NUM_THREADS=1")),
        lengths=(1, 5),
        settings={"device": "cpu:2"},
    ),
    Case(
        name="imagenet-workers",
        package="torchvision",
        repository="pytorch/examples",
        files={"main.py": "imagenet/main.py"},
        data=_IMAGES,
        command="""OMP_NUM_THREADS=1 python main.py -a mobilenet_v3_small -j 0 -b 16 --lr 0.01 --no-accel
          -p 2 --epochs {length} data""",
        fix=Change("The loader has no worker", ("--set", "-j=1")),
        lengths=(1, 3),
    ),
    HF,
    dataclasses.replace(
        HF,
        name="accelerate-workers",
        package="accelerate",
        command=HF.command.replace(
            "python run_mae.py",
            "accelerate launch --cpu --num_processes 1 --num_machines 1 --mixed_precision no "
            "--dynamo_backend no run_mae.py",
        ),
    ),
    Case(
        name="trl-save",
        package="trl",
        data=("language", "data", "100"),
        command="""OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 trl sft --model_name_or_path data/model
          --dataset_name data/text --output_dir out --report_to none --use_cpu --bf16 False
          --max_length 64 --per_device_train_batch_size 4 --gradient_checkpointing False --logging_steps 5
          --save_strategy steps --save_steps 2 --save_total_limit 1 --max_steps {length}""",
        fix=Change("A checkpoint after every second step", ("--set", "--save_steps=30")),
        lengths=(50, 300),
        cheats=(Change("No checkpoint", ("--set", "--save_strategy=no"), valid=False),),
    ),
    Case(
        name="lerobot-save",
        package="lerobot",
        data=("robot", "data/arm", "96"),
        command="""OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 lerobot-train --policy.type=act
          --dataset.repo_id=local/arm --dataset.root=data/arm --batch_size=4 --policy.chunk_size=8
          --policy.n_action_steps=8 --policy.use_vae=false --policy.dim_model=64 --policy.n_heads=4
          --policy.dim_feedforward=128 --policy.n_encoder_layers=1 --policy.optimizer_lr=1e-3
          --policy.pretrained_backbone_weights=null --policy.device=cpu --wandb.enable=false
          --policy.push_to_hub=false --num_workers=0 --log_freq=6 --output_dir=out/{run} --save_freq=2
          --steps={length}""",
        fix=Change("A checkpoint after every second step", ("--set", "--save_freq=30")),
        lengths=(30, 90),
    ),
    Case(
        name="lightning-eval",
        package="lightning",
        repository="Lightning-AI/pytorch-lightning",
        files={"a/b/train.py": "examples/pytorch/basics/backbone_image_classifier.py"},
        data=("mnist", "Datasets"),
        # The one of its demos, which it looks for first.
        prepare=("ln -s Datasets data",),
        command="""OMP_NUM_THREADS=1 python a/b/train.py --trainer.accelerator cpu
          --trainer.max_steps {length}
          --trainer.val_check_interval 20 --trainer.limit_val_batches 40 --trainer.limit_test_batches 5
          --trainer.limit_predict_batches 5 --trainer.log_every_n_steps 10""",
        fix=Change("Evaluation is too frequent", ("--set", "--trainer.val_check_interval=400")),
        lengths=(400, 1600),
    ),
)
