"""Writes a small LeRobot data set: `python lerobot_dataset.py FOLDER SIDE`. Two episodes of an arm that
follows a rule, one camera whose SIDE x SIDE images say nothing."""

from __future__ import annotations

import sys

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

EPISODES, FRAMES, JOINTS = 2, 40, 6


def main(folder: str, side: int) -> None:
    rng = np.random.default_rng(0)
    camera = {"dtype": "image", "shape": (side, side, 3), "names": ["height", "width", "channels"]}
    joints = {"dtype": "float32", "shape": (JOINTS,), "names": None}
    data = LeRobotDataset.create(
        repo_id="local/arm",
        fps=10,
        root=folder,
        use_videos=False,
        image_writer_threads=2,
        features={"observation.state": joints, "observation.images.wrist": camera, "action": joints},
    )
    for _ in range(EPISODES):
        state = rng.normal(size=JOINTS).astype("float32")
        for _ in range(FRAMES):
            action = np.float32(0.3) * np.roll(state, 1) - np.float32(0.1) * state
            image = rng.integers(0, 255, (side, side, 3), dtype="uint8")
            frame = {"observation.state": state, "action": action, "observation.images.wrist": image}
            data.add_frame({**frame, "task": "move"})
            state = state + action
        data.save_episode()
    data.finalize()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
