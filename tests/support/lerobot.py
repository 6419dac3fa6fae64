"""Seed 004's training command, a stand-in program that obeys it, and three hypotheses about it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PROGRAM = Path(__file__).with_name("lerobot_standin.py")

_SEED = (Path(__file__).parent.parent / "data" / "seed004_command.sh").read_text(encoding="utf-8")
# As it stands in the seed, between the outer single quotes of a shell command.
SEED_COMMAND_QUOTED = _SEED.partition("--cmd '")[2].partition(" \\\n    [ADD YOUR MODIFIED FLAGS HERE]")[0]
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
