"""Trains a small convolutional network on images that an object store hands out over HTTP."""

from __future__ import annotations

import argparse
import http.client
import math
import multiprocessing
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

IMAGES, CLASSES, SIDE = 4096, 10, 64


def make_image(index: int) -> bytes:
    """One label byte, then the image: a pattern of its class under strong noise."""
    label = index % CLASSES
    pattern = np.random.default_rng(label).normal(0, 16, (3, SIDE, SIDE))
    noise = np.random.default_rng(1000 + index).normal(128, 50, (3, SIDE, SIDE))
    return bytes([label]) + (pattern + noise).clip(0, 255).astype(np.uint8).tobytes()


class ObjectStore(BaseHTTPRequestHandler):
    """Answers GET /images/N; a bucket in another region takes `latency` seconds to do so."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    latency = 0.0
    objects: tuple[bytes, ...] = ()

    def do_GET(self) -> None:
        time.sleep(self.latency)
        body = self.objects[int(self.path.rsplit("/", 1)[1])]
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def start_store(latency: float) -> int:
    """Starts the store in a process of its own, and returns its port."""
    ObjectStore.latency = latency
    ObjectStore.objects = tuple(make_image(i) for i in range(256))
    server = ThreadingHTTPServer(("127.0.0.1", 0), ObjectStore)
    server.daemon_threads = True
    multiprocessing.get_context("fork").Process(target=server.serve_forever, daemon=True).start()
    server.socket.close()
    return int(server.server_address[1])


class StreetScenes(Dataset):
    """Images by number; each process keeps one connection to the store open."""

    def __init__(self, port: int, verify: bool) -> None:
        self.port = port
        self.verify = verify
        self.connection: http.client.HTTPConnection | None = None

    def __len__(self) -> int:
        return IMAGES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.connection.request("GET", f"/images/{index % 256}")
        body = self.connection.getresponse().read()
        if self.verify and len(body) != 1 + 3 * SIDE * SIDE:
            raise OSError(f"image {index} is damaged: {len(body)} bytes")
        pixels = torch.frombuffer(bytearray(body[1:]), dtype=torch.uint8)
        return pixels.view(3, SIDE, SIDE), body[0]


def make_model(norm: bool) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in ((3, 24), (24, 48), (48, 96)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1)]
        layers += [nn.BatchNorm2d(after)] if norm else []
        layers += [nn.ReLU(), nn.Conv2d(after, after, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(384, CLASSES))


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = StreetScenes(start_store(args.latency), bool(args.verify))
    loader = DataLoader(
        dataset,
        args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.num_workers,
        prefetch_factor=args.prefetch_factor if args.num_workers else None,
        persistent_workers=args.num_workers > 0,
        pin_memory=bool(args.pin_memory) and device.type == "cuda",
    )
    model = make_model(bool(args.batch_norm)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=bool(args.fused))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4000)
    end, step = math.inf, 0
    while step < args.steps and time.monotonic() < end:
        for images, labels in loader:
            step += 1
            inputs = images.to(device, non_blocking=True).float() / 255 - 0.5
            loss = nn.functional.cross_entropy(model(inputs), labels.to(device, non_blocking=True))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            if args.clip_norm:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
            optimizer.step()
            scheduler.step()
            if step % args.log_every == 0:
                print(f"step: {step} loss: {loss.item():.4f}", flush=True)
            if step == args.warmup_steps:
                end = time.monotonic() + args.duration
            if step == args.steps or time.monotonic() >= end:
                break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=16)
    add("--latency", type=float, default=0.002, help="round trip to the store, in s")
    add("--num_workers", type=int, default=0)
    add("--prefetch_factor", type=int, default=2)
    add("--pin_memory", type=int, default=0)
    add("--verify", type=int, default=1, help="check the size of each image")
    add("--batch_norm", type=int, default=1)
    add("--fused", type=int, default=0, help="1: the fused optimizer")
    add("--clip_norm", type=float, default=1.0)
    add("--lr", type=float, default=3e-4)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
