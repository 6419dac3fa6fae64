"""Serves a policy to a robot over ZeroMQ: observations go to a server process, actions come back.

`--transport=zmq` starts the server, as it would run on another machine; `--transport=direct` keeps the
policy in the robot's own process.
"""

from __future__ import annotations

import argparse
import io
import math
import subprocess
import sys
import time
from typing import Any

import torch
import zmq
from torch import nn

MODEL_SIDE, ACTIONS = 64, 6


class Policy(nn.Module):
    """Images to a chunk of actions, by a few steps of denoising."""

    def __init__(self, width: int, horizon: int) -> None:
        super().__init__()
        self.horizon = horizon
        self.vision = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=4), nn.ReLU(), nn.Conv2d(24, 48, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(432, width),
        )  # fmt: skip
        self.denoiser = nn.Sequential(
            nn.Linear(width + horizon * ACTIONS, 4 * width),
            nn.SiLU(),
            nn.Linear(4 * width, horizon * ACTIONS),
        )

    def forward(self, images: torch.Tensor, steps: int) -> torch.Tensor:
        context = self.vision(images)
        actions = torch.zeros(1, self.horizon * ACTIONS, device=images.device)
        for _ in range(steps):
            actions = actions + self.denoiser(torch.cat([context.mean(0, keepdim=True), actions], 1)) / steps
        return actions.view(self.horizon, ACTIONS)


class DirectPolicy:
    """The policy in this process. A camera's resolution that is not the model's is mended frame by frame."""

    def __init__(self, args: argparse.Namespace) -> None:
        torch.manual_seed(args.seed)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.policy = Policy(args.width, args.action_horizon).to(self.device).eval()
        self.steps = args.denoising_steps
        self.interpolation = args.interpolation

    @torch.inference_mode()
    def get_action(self, observation: dict[str, torch.Tensor]) -> torch.Tensor:
        frames = [frame.to(self.device) for frame in observation.values()]
        images = torch.stack([self.fit(frame) for frame in frames])
        return self.policy(images, self.steps).cpu()

    def fit(self, frame: torch.Tensor) -> torch.Tensor:
        size = (MODEL_SIDE, MODEL_SIDE)
        if frame.shape[1:] == size:
            return frame
        return nn.functional.interpolate(frame[None], size, mode=self.interpolation)[0]


def encode(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def decode(message: bytes) -> Any:
    return torch.load(io.BytesIO(message))


def open_socket(kind: int) -> zmq.Socket:
    """One that gives the other side up after a minute without a word."""
    socket = zmq.Context.instance().socket(kind)
    socket.setsockopt(zmq.RCVTIMEO, 60_000)
    return socket


class ServedPolicy:
    """The same in a server process: observations and actions are serialised and go through a socket."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.socket = open_socket(zmq.REQ)
        port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.server = subprocess.Popen([sys.executable, *sys.argv, f"--serve={port}"])

    def get_action(self, observation: dict[str, torch.Tensor]) -> torch.Tensor:
        self.socket.send(encode(observation))
        return decode(self.socket.recv())

    def close(self) -> None:
        self.socket.send(b"")
        self.server.wait()
        self.socket.close()


def serve(args: argparse.Namespace) -> None:
    """Answers observations until an empty one comes."""
    policy, socket = DirectPolicy(args), open_socket(zmq.REP)
    socket.connect(f"tcp://127.0.0.1:{args.serve}")
    while message := socket.recv():
        socket.send(encode(policy.get_action(decode(message))))
    socket.close()


class Robot:
    """Three cameras that deliver float images, and an arm; simulated."""

    def __init__(self, width: int, height: int) -> None:
        generator = torch.Generator().manual_seed(4)
        shape, cameras = (3, height, width), ("front", "left", "wrist")
        self.frames = {name: torch.rand(shape, generator=generator) for name in cameras}
        self.position = torch.zeros(ACTIONS)

    def get_observation(self) -> dict[str, torch.Tensor]:
        return self.frames

    def send_action(self, action: torch.Tensor) -> None:
        self.position = 0.9 * self.position + 0.1 * action


def run(args: argparse.Namespace) -> None:
    robot = Robot(*map(int, args.camera.split("x")))
    policy = DirectPolicy(args) if args.transport == "direct" else ServedPolicy(args)
    for _ in range(args.dummy_requests):
        policy.get_action(robot.get_observation())
    end = math.inf
    for number in range(1, args.requests + 1):
        observation = robot.get_observation()
        asked = time.perf_counter()
        actions = policy.get_action(observation)
        took = time.perf_counter() - asked
        for action in actions[: args.executed]:
            robot.send_action(action)
        if number % args.log_every == 0:
            print(f"request {number} latency: {1000 * took:.2f} ms", flush=True)
        if number == args.warmup_requests:
            end = time.monotonic() + args.duration
        if time.monotonic() >= end:
            break
    if isinstance(policy, ServedPolicy):
        policy.close()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--transport", choices=["zmq", "direct"], default="zmq")
    add("--serve", type=int, default=0, help="serve the policy to the robot at this port")
    add("--camera", default="320x240", help="the cameras' resolution; the model was made for 64x64")
    add("--interpolation", choices=["bilinear", "nearest"], default="bilinear")
    add("--denoising_steps", type=int, default=4)
    add("--action_horizon", type=int, default=16, help="actions a request")
    add("--executed", type=int, default=8, help="actions that are carried out of each answer")
    add("--width", type=int, default=96)
    add("--dummy_requests", type=int, default=0, help="requests before the first that is printed")
    add("--log_every", type=int, default=1)
    add("--duration", type=float, default=math.inf, help="s to run for after the warm-up")
    add("--warmup_requests", type=int, default=10, help="requests before --duration counts")
    add("--requests", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    options = parse()
    if options.serve:
        serve(options)
    else:
        run(options)
