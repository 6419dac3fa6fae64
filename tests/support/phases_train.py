"""Imitate a teacher first, then learn by reward: another optimizer, no teacher, faster steps."""

import argparse
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--supervised_steps", type=int, default=250)
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--teacher_ms", type=float, default=50)
parser.add_argument("--silent", action="store_true")
args = parser.parse_args()
torch.set_num_threads(1)
policy = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 8))
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
if not args.silent:
    print("supervised: teacher on", flush=True)
for step in range(args.steps):
    if step == args.supervised_steps:
        optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)
        if not args.silent:
            print("PPO: teacher off", flush=True)
    seen = torch.randn(512, 64)
    if step < args.supervised_steps:
        time.sleep(args.teacher_ms / 1000)  # the teacher's calls
        loss = nn.functional.mse_loss(policy(seen), seen[:, :8])
    else:
        time.sleep(0.01)
        loss = (policy(seen) - seen[:, 8:16]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
