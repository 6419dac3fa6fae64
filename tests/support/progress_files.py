"""Progress files for tests: one as gpudebug writes it, and one with as many hypotheses as wanted."""

from __future__ import annotations

CONTRACT = """\
# GPU utilization debugging: act-relative-rtc

Fix the poor GPU utilisation of act_relative_rtc training.

## Baselines

### Baseline: workload
- **Command**: `lerobot-train --steps=200`
- **GPU util**: 27.4% (95% CI 26.1 to 28.6, 4 runs)
- **Throughput**: 6.1 steps/s
- **Training**: SUCCESS
- **Loss**: CONVERGING
- **Runs**: runs/0001-baseline-workload, runs/0002-baseline-workload

## Hypotheses

### Hypothesis 1: Unused image frames are copied to the GPU
- **Description**: Two frames are loaded and one is used.
- **Test Method**: Load one frame.
- **Intervention**: --set --dataset.frames=1
- **Status**: VALIDATED
- **Result**:
  - GPU util before: 27.4%
  - GPU util after: 61.0%
  - Improvement: +33.6pp (95% CI +31.2 to +36.0)
  - Training: SUCCESS
  - Loss: CONVERGING
  - Throughput: 6.1 to 13.4 steps/s
  - Notes: none
  - Runs: runs/0005-h1, runs/0006-h1

### Hypothesis 2: The loader has too few workers
- **Description**: One worker decodes every frame.
- **Test Method**: Give it four.
- **Intervention**: --set --num_workers=4
- **Status**: UNTESTED
"""

_ENTRY = """
### Hypothesis {n}: The loader waits for the store, variant {n}
- **Description**: Each shard is fetched anew for every epoch.
- **Test Method**: Keep shard {n} in memory.
- **Intervention**: --set --loader.cache={n}
- **Status**: {status}
- **Result**:
  - GPU util before: 27.4%
  - GPU util after: 61.0%
  - Improvement: +33.6pp (95% CI +31.2 to +36.0)
  - Training: SUCCESS
  - Loss: CONVERGING
  - Throughput: 6.1 to 13.4 steps/s
  - Notes: interval from 4 runs a side
  - Runs: runs/{run:04d}-h{n}, runs/{next_run:04d}-h{n}
"""


def many_hypotheses(count: int) -> bytes:
    """A progress file of `count` hypotheses, each with a Result; 10,000 of them make 5.8 MB."""
    head, _, _ = CONTRACT.partition("\n### Hypothesis 1")
    statuses = ("VALIDATED", "REJECTED", "INCONCLUSIVE", "INVALID")
    entries = (
        _ENTRY.format(n=n, status=statuses[n % 4], run=2 * n + 5, next_run=2 * n + 6)
        for n in range(1, count + 1)
    )
    return (head + "".join(entries)).encode()
