"""Data for the programs of others, made from a seed: `python data.py KIND …`, in the programs' environment.

images FOLDER COUNT WIDTHxHEIGHT CLASSES; text FILE KILOBYTES; mnist FOLDER; language FOLDER KILOBYTES;
robot FOLDER SIDE; write FILE TEXT; copy PROGRAM FILE.
"""

from __future__ import annotations

import json
import random
import runpy
import shutil
import struct
import sys
from pathlib import Path


def images(folder: str, count: str, size: str, classes: str) -> None:
    """JPEG files in train/CLASS and val/CLASS; each class has a colour of its own."""
    import numpy as np
    from PIL import Image

    noise = np.random.default_rng(0)
    width, height = (int(side) for side in size.split("x"))
    for part, number in (("train", int(count)), ("val", int(count) // 10)):
        for index in range(number):
            label = index % int(classes)
            path = Path(folder, part, f"class{label}", f"{index:05}.jpg")
            path.parent.mkdir(parents=True, exist_ok=True)
            small = noise.integers(0, 120, (height // 8, width // 8, 3), dtype=np.uint8)
            small[:, :, label % 3] += 40 * (1 + label // 3)
            Image.fromarray(small).resize((width, height)).save(path, quality=90)


def text(file: str, kilobytes: str) -> None:
    """Words of a small vocabulary, in lines."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(_words(int(kilobytes) * 1000))


def _words(length: int) -> str:
    chance = random.Random(0)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = [
        "".join(chance.choices(letters, range(26, 0, -1), k=chance.randint(2, 8))) for _ in range(400)
    ]
    found: list[str] = []
    size = 0
    while size < length:
        line = " ".join(chance.choices(vocabulary, k=10)).capitalize() + ".\n"
        found.append(line)
        size += len(line)
    return "".join(found)


def mnist(folder: str) -> None:
    """The four files of MNIST in its own format: 60,000 and 10,000 pictures of noise with a bright row."""
    import numpy as np

    noise = np.random.default_rng(0)
    for part, number in (("train", 60000), ("t10k", 10000)):
        labels = noise.integers(0, 10, number, dtype=np.uint8)
        pictures = noise.integers(0, 100, (number, 28, 28), dtype=np.uint8)
        pictures[np.arange(number), 2 * labels + 4] += 150
        raw = Path(folder, "MNIST", "raw")
        raw.mkdir(parents=True, exist_ok=True)
        head = struct.pack(">IIII", 2051, number, 28, 28)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(head + pictures.tobytes())
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, number) + labels.tobytes())


def language(folder: str, kilobytes: str) -> None:
    """A small Llama with random weights, its tokenizer, and a data set of text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    content = _words(int(kilobytes) * 1000).splitlines()
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<unk>", "<s>", "</s>"]
    tokenizer.train_from_iterator(content, trainers.BpeTrainer(vocab_size=2000, special_tokens=special))
    names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(f"{folder}/model")
    config = LlamaConfig(
        vocab_size=2000,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=128,
    )
    LlamaForCausalLM(config).save_pretrained(f"{folder}/model")
    Path(folder, "text").mkdir(exist_ok=True)
    rows = ("".join(content[at : at + 10]) for at in range(0, len(content), 10))
    Path(folder, "text", "train.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))


def robot(folder: str, side: str) -> None:
    """A data set of LeRobot's: two episodes of an arm."""
    program = Path(__file__).parents[1] / "heavy" / "lerobot_dataset.py"
    sys.argv = [str(program), folder, side]
    runpy.run_path(str(program), run_name="__main__")


def write(file: str, content: str) -> None:
    Path(file).write_text(content)


def copy(program: str, file: str) -> None:
    """A program of this folder: what a library leaves to its users."""
    shutil.copy(Path(__file__).parent / program, file)


if __name__ == "__main__":
    {f.__name__: f for f in (images, text, mnist, language, robot, write, copy)}[sys.argv[1]](*sys.argv[2:])
