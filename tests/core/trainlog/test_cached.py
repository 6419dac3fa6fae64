"""Lines by which programs say that they find what another run has made."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog import LogReader
from gpudebug.core.trainlog.cached import finds_cache


@pytest.mark.parametrize(
    "line",
    [
        "Using cached features from data/cache.npy",
        "Loading cached processed dataset at /data/x.arrow",
        "Loading features from cached file data/cached_train_128",
        "Reusing dataset imdb (/root/data)",
        "train: Scanning /data/labels.cache... 128 images, 0 backgrounds",
        "Found preprocessed data in out/prepared",
        "[cache] hit: 200 samples",
        "data/train.bin already exists",
        "Loaded tokenized dataset from tok.bin",
        "Loading compiled kernels from build/",
        "Tokenized file found: tok.npy",
    ],
)
def test_a_line_that_says_so(line: str) -> None:
    assert finds_cache(line.encode()) == line


@pytest.mark.parametrize(
    "line",
    [
        "Building cache data/cache.npy",
        "Cache not found: computing features",
        "cache miss",
        "use_cache: true",
        "cache_dir: /data/cached",
        "Saving preprocessed data to out/prepared",
        "Tokenizing 200 files",
        "Generating with the kv cache, using 4 heads",
        "step 1 loss 2.0",
    ],
)
def test_a_line_that_does_not(line: str) -> None:
    assert finds_cache(line.encode()) is None


def test_what_is_cached_in_the_middle_is_the_programs_own() -> None:
    steps = "".join(f"step {i} loss 2.{i}\n" for i in range(1, 9))
    for log, found in ((f"Using cached data\n{steps}", True), (f"{steps}Using cached data\n", False)):
        reader = LogReader()
        reader.feed(log.encode(), 1.0)
        assert (reader.summary().cached is not None) is found
