"""How tests/data/trace_cpu.json.gz was made: a small training on a CPU under torch.profiler (PyTorch 2.13.0).

Run from the root of the repository: `python tests/support/trace_recording.py tests/data/trace_cpu.json.gz`.
Four steps are recorded; the loader sleeps 1 ms a sample, 8 samples a batch, in the training's own process.
"""

from __future__ import annotations

import gzip
import sys
import time
from pathlib import Path


def record(path: Path) -> None:
    """Train eight steps, four of them profiled, and write the trace as gzip."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 64

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            time.sleep(0.001)
            return torch.full((32,), float(index)), index % 4

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    plain = path.with_suffix("")
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=4, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(plain.name),
    ) as profiler:
        for data, target in DataLoader(Slow(), batch_size=8):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(data), target)
            loss.backward()
            optimizer.step()
            loss.item()
            profiler.step()
    written = Path(plain.name)
    path.write_bytes(gzip.compress(written.read_bytes(), 9, mtime=0))
    written.unlink()


if __name__ == "__main__":
    record(Path(sys.argv[1]))
