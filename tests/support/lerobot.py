"""Seed 004's training command, a stand-in program that obeys it, and three hypotheses about it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PROGRAM = Path(__file__).with_name("lerobot_standin.py")

# As it stands in the seed, between the outer single quotes of a shell command.
SEED_COMMAND_QUOTED = r"""lerobot-train \
    --policy.type=act_relative_rtc \
    --dataset.repo_id=giacomoran/so101_data_collection_cube_hand_guided_1x224x8 \
    --dataset.episodes=[0] \
    --steps=200 \
    --batch_size=8 \
    --policy.optimizer_lr=3e-5 \
    --policy.optimizer_lr_backbone=3e-5 \
    --policy.chunk_size=8 \
    --policy.n_action_steps=8 \
    --policy.obs_state_delta_frames=1 \
    --policy.use_vae=false \
    --policy.n_decoder_layers=4 \
    --policy.downscale_img_square=224 \
    --policy.vision_backbone=resnet34 \
    --policy.pretrained_backbone_weights=ResNet34_Weights.IMAGENET1K_V1 \
    --policy.pre_norm=true \
    --policy.use_rtc=false \
    --policy.device=cuda \
    --policy.input_features='"'"'{"observation.state": {"shape": [6], "type": "STATE"}, "observation.images.wrist": {"shape": [3, 224, 224], "type": "VISUAL"}}'"'"' \
    --wandb.enable=false \
    --output_dir=outputs/tmp/test_hypothesis_N \
    --policy.push_to_hub=false"""  # noqa: E501
# What the shell makes of it: the argument that a program gets.
SEED_COMMAND = SEED_COMMAND_QUOTED.replace("""'"'"'""", "'")
OUTPUT_DIR = "outputs/tmp/test_hypothesis_N"
# Plain ACT knows no flag of the relative policy.
REFERENCE_COMMAND = "\n".join(
    line
    for line in SEED_COMMAND.replace("type=act_relative_rtc", "type=act").splitlines()
    if not any(flag in line for flag in ("obs_state_delta_frames", "downscale_img_square", "use_rtc"))
)

# Title, and the change in the syntax of `gpudebug propose`.
CODEC = ("Frames are decoded by a slow codec", "--set --dataset.video_backend=pyav")
BACKBONE = (
    "The backbone is too heavy for frames of 224 pixels",
    "--set --policy.vision_backbone=mobilenet_v3_small",
)
WORKERS = ("Four workers cannot fetch two frames a sample in time", "--set --num_workers=16")
HYPOTHESES = (CODEC, BACKBONE, WORKERS)


def python310() -> Path | None:
    """A Python 3.10 of this machine that starts, or None."""
    pyenv = sorted(Path.home().glob(".pyenv/versions/3.10.*/bin/python3.10"))
    on_path = shutil.which("python3.10")
    for candidate in [*([Path(on_path)] if on_path else []), *pyenv]:
        probe = subprocess.run(
            [candidate, "-c", "import sys; print(sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if probe.stdout.strip() == "(3, 10)":
            return candidate
    return None


def install(environment: Path, python: Path) -> Path:
    """Make `environment`, a virtual environment of `python`, with `lerobot-train` in its bin; that bin."""
    subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
    script = environment / "bin" / "lerobot-train"
    source = PROGRAM.read_text(encoding="utf-8")
    script.write_text(f"#!{environment / 'bin' / 'python'}\n{source}", encoding="utf-8")
    script.chmod(0o755)
    return script.parent
