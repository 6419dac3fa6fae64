"""Hugging Face's Trainer: the loader waits for 60 % of each step."""

from __future__ import annotations

import argparse

import torch
from torch import nn
from transformers import Trainer, TrainingArguments
from waiting import Busy, Waiting


class Model(nn.Module):
    """What the Trainer expects of a model: keywords in, a loss out."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Busy()

    def forward(self, rows: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.model(rows)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


def collated(samples: list[tuple[torch.Tensor, int]]) -> dict[str, torch.Tensor]:
    rows, labels = zip(*samples, strict=True)
    return {"rows": torch.stack(rows), "labels": torch.tensor(labels)}


class InOrder(Trainer):
    """The data set counts its batches, so they come in its order."""

    def _get_train_sampler(self, *_: object) -> torch.utils.data.Sampler:
        return torch.utils.data.SequentialSampler(self.train_dataset)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--output_dir", default="outputs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    training = TrainingArguments(
        output_dir=options.output_dir,
        max_steps=options.steps,
        per_device_train_batch_size=8,
        learning_rate=options.lr,
        optim="sgd",
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
    )
    data = Waiting(8, options.steps + 1)
    InOrder(model=Model(), args=training, train_dataset=data, data_collator=collated).train()


if __name__ == "__main__":
    main()
