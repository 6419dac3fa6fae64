"""PyTorch Lightning's Trainer: the loader waits for 60 % of each step."""

from __future__ import annotations

import argparse

import lightning
import torch
from torch.utils.data import DataLoader
from waiting import Busy, Waiting


class Classifier(lightning.LightningModule):
    def __init__(self, lr: float) -> None:
        super().__init__()
        self.model, self.lr = Busy(), lr

    def training_step(self, batch: list[torch.Tensor], _index: int) -> torch.Tensor:
        rows, classes = batch
        loss = torch.nn.functional.cross_entropy(self.model(rows), classes)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.lr)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--lr", type=float, default=0.1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(options.lr), DataLoader(Waiting(8, options.steps), batch_size=8))


if __name__ == "__main__":
    main()
