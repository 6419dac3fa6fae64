from __future__ import annotations

import pytest

from gpudebug.core.command.meanings import by_meaning, kind_of


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("--batch_size", "--ims-per-batch", "SOLVER.IMS_PER_BATCH", "--samples_per_gpu", "-bs"), "batch"),
        (("per_device_train_batch_size", "train_micro_batch_size_per_gpu", "--bsz"), "batch"),
        (("--lr", "optim.learning_rate", "--base-lr"), "learning rate"),
        (("--epochs", "num_train_epochs", "--n_epochs", "max-epochs"), "epochs"),
        (("--max_steps", "--max_iters", "--total-timesteps", "--num-iterations"), "steps"),
        (("--seed", "rng_seed"), "seed"),
        (("--block_size", "--max_seq_length", "--context-length"), "sequence length"),
        (("imgsz", "--img-size", "--input_size"), "image size"),
    ],
)
def test_names_of_one_kind(names: tuple[str, ...], kind: str) -> None:
    assert {name: kind_of(name) for name in names} == dict.fromkeys(names, kind)


@pytest.mark.parametrize(
    "name",
    ["--num_workers", "--eval_batch_size", "--lr_scheduler", "--save_steps", "--warmup_steps", "-x", ""],
)
def test_names_that_mean_what_they_say_alone(name: str) -> None:
    assert kind_of(name) is None


def test_a_locked_option_under_another_name() -> None:
    assert by_meaning(["--batch_size"], ["--ims-per-batch", "--lr"], []) == [
        ("--batch_size", "--ims-per-batch")
    ]
    assert by_meaning(["--batch_size"], ["--batch-size"], []) == []
    assert by_meaning(["--num_workers"], ["--workers"], []) == []
    # A program with both has a reason for two.
    both = ["global_batch_size", "micro_batch_size"]
    assert by_meaning(["--global-batch-size"], ["--micro-batch-size"], both) == []
    assert by_meaning(["--global-batch-size"], ["--micro-batch-size"], both[:1]) != []
