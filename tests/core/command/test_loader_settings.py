from __future__ import annotations

import pytest

from gpudebug.core.command.loader_settings import meant, reported


@pytest.mark.parametrize(
    ("flag", "setting"),
    [
        ("--num_workers", "workers"),
        ("--dataloader_num_workers", "workers"),
        ("--data.num-workers", "workers"),
        ("data.train_dataloader_num_workers", "workers"),
        ("--loader-workers", "workers"),
        ("NUM_WORKERS", "workers"),
        ("--workers", None),
        ("--eval_num_workers", None),
        ("--preprocessing_num_workers", None),
        ("--dataloader_prefetch_factor", "prefetch_factor"),
        ("--persistent_workers", "persistent_workers"),
        ("--pin_memory", "pin_memory"),
        ("--batch_size", "batch_size"),
        ("--per_device_train_batch_size", "batch_size"),
        ("--eval_batch_size", None),
        ("--gradient_accumulation_steps", None),
        ("--lr", None),
    ],
)
def test_what_a_flag_is_meant_for(flag: str, setting: str | None) -> None:
    assert meant(flag) == setting


def test_the_loader_that_feeds_most_is_told_first() -> None:
    loaders: list[object] = [
        {"workers": 1, "training": True, "fetched": 3},
        {"workers": 2, "training": True, "fetched": 30},
        {"workers": 8, "training": False, "fetched": 99},
        {"workers": None, "training": True, "fetched": 1},
        "no loader",
    ]
    assert reported({"loaders": loaders}, "workers") == ("2", "1")
    assert reported({"loaders": [{"workers": 4, "fetched": "many"}, *loaders]}, "workers") == ("2", "1", "4")
    assert reported({"loaders": loaders}, "pin_memory") == ()
    assert reported({"loaders": "?"}, "workers") == reported({}, "workers") == ()
