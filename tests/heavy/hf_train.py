"""Trains a tiny language model with Hugging Face's Trainer on a data set that is slow to read.

Model and data are random and made here: nothing is downloaded. Each sample waits as a read over a network
does, without CPU; how many are read at once is the Trainer's own `--dataloader_num_workers`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments

VOCABULARY = 64


@dataclass
class DataArguments:
    latency: float = field(default=0.02, metadata={"help": "s that each sample takes to arrive"})
    samples: int = field(default=4096, metadata={"help": "size of the data set"})
    length: int = field(default=48, metadata={"help": "tokens a sample"})


class RemoteSequences(Dataset):
    """Sequences that count upwards from a random token by a random stride: learnable in a few steps."""

    def __init__(self, arguments: DataArguments) -> None:
        self.arguments = arguments

    def __len__(self) -> int:
        return self.arguments.samples

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        time.sleep(self.arguments.latency)
        start, stride = index % VOCABULARY, 1 + index // VOCABULARY % 3
        tokens = (start + stride * torch.arange(self.arguments.length)) % VOCABULARY
        return {"input_ids": tokens, "labels": tokens}


def main() -> None:
    data, training = HfArgumentParser((DataArguments, TrainingArguments)).parse_args_into_dataclasses()
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=data.length,
        n_embd=192,
        n_layer=3,
        n_head=4,
        bos_token_id=0,
        eos_token_id=0,
    )
    Trainer(model=GPT2LMHeadModel(config), args=training, train_dataset=RemoteSequences(data)).train()


if __name__ == "__main__":
    main()
