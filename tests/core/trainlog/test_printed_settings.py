"""The configuration that programs print and save."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trainlog.printed_settings import LONGEST, MOST, printed_settings, read_saved

LEROBOT = """\
INFO 2025-06-10 12:00:00 ts/train.py:111 {'batch_size': 8,
 'dataset': {'episodes': None,
             'repo_id': 'lerobot/pusht',
             'root': PosixPath('/data')},
 'policy': {'chunk_size': 100,
            'input_features': {'state': {'shape': (2,), 'type': <FeatureType.STATE: 'STATE'>}},
            'type': 'act'},
 'note': ('one '
          'two'),
 'seen': {1, 2},
 'steps': 1000}
INFO 2025-06-10 12:00:09 ts/train.py:232 step:100 smpl:800 loss:0.3 lr:1.0e-04
"""
ARGUMENTS = """\
TrainingArguments(
_n_gpu=1,
learning_rate=5e-05,
optim=OptimizerNames.ADAMW,
)
"""
YAML = """\
train:
  epochs: 3
  opt:
    name: adam
  seed: 7
device: cuda:0
"""

TEXTS: dict[str, tuple[str, dict[str, str]]] = {
    "argparse": (
        "Namespace(lr=0.1, name='a b', betas=[0.9, 0.999], out=None)\n",
        {"lr": "0.1", "name": "a b", "betas": "[0.9, 0.999]", "out": "None"},
    ),
    "a dictionary over lines": (
        LEROBOT,
        {
            "batch_size": "8",
            "dataset.episodes": "None",
            "dataset.repo_id": "lerobot/pusht",
            "dataset.root": "/data",
            "policy.chunk_size": "100",
            "policy.input_features.state.shape": "[2]",
            "policy.input_features.state.type": "STATE",
            "policy.type": "act",
            "note": "[one two]",
            "seen": "[1, 2]",
            "steps": "1000",
        },
    ),
    "a dataclass": (
        "cfg: TrainConfig(lr=0.1, model=Model(dim=3))",
        {"lr": "0.1", "model.dim": "3"},
    ),
    "arguments over lines": (
        ARGUMENTS,
        {"_n_gpu": "1", "learning_rate": "5e-05", "optim": "OptimizerNames.ADAMW"},
    ),
    "JSON": ('{"a": {"b": true}, "c": [1, 2], "d": null}', {"a.b": "true", "c": "[1, 2]", "d": "null"}),
    "YAML": (
        YAML,
        {"train.epochs": "3", "train.opt.name": "adam", "train.seed": "7", "device": "cuda:0"},
    ),
    "a list of lines": ("- learning_rate: 1\n- seed: 2\n", {"learning_rate": "1", "seed": "2"}),
    "dots": ("  micro_batch_size ................ 4\n", {"micro_batch_size": "4"}),
    "absl": (
        "I0601 10:00:00.123456 140 train.py:48] batch_size: 128\nConfig param steps: 100\n",
        {"batch_size": "128", "steps": "100"},
    ),
    "logged": ("2025-01-01 INFO - lr = 0.1\n[INFO] seed: 2\n", {"lr": "0.1", "seed": "2"}),
    "logged with its place": (
        "[2024-01-01 10:00:00,000] [INFO] [config.py:988:print]   train_batch_size ............. 8\n"
        "2025-01-01 10:00:00.123 | INFO     | train:main:10 - seed: 2\n",
        {"train_batch_size": "8", "seed": "2"},
    ),
    "quoted": ('name: "a b"\n', {"name": "a b"}),
    "the text of a module": ("Linear(in_features=3, bias=True)\n(0): Conv(stride=(1, 1))\n", {}),
    "prose": ("Loading data: 30 files\nDone. Took: a while\nSee http://x.org/a=b now\n", {}),
    "options as they were given": ("python train.py --lr=0.2 --work 3\n--seed: 2\n", {}),
    "two values of one name": ("lr: 0.1\nlr: 0.2\nseed: 1\nseed: 1\n", {"seed": "1"}),
    "training has begun": ("lr: 0.1\nstep 1 loss 2.0 lr 0.3\nseed: 5\n", {"lr": "0.1"}),
    "metrics look like a configuration": ("{'loss': 2.0, 'learning_rate': 3e-4}\n", {}),
    "a weight of a loss is none yet": ("aux_loss: 0.1\nlr: 0.2\n", {"aux_loss": "0.1", "lr": "0.2"}),
    "a broken one": ("Namespace(lr=0.1, x={\nseed: 3\n", {"seed": "3"}),
    "what is ignored": ("WARNING: unused arguments: {'workers': 4}\nlr: 0.1\n", {"lr": "0.1"}),
    "what is ignored, below": ("Ignored keys:\n  workers: 4\n  seed: 2\nlr: 0.1\n", {"lr": "0.1"}),
    "a warning before": ("WARNING: no GPU, not compiling\n  workers: 4\n", {"workers": "4"}),
    "overrides that are unknown": ("Ignoring unknown overrides: ['workers=4']\n", {}),
    "defaults after the values": (
        "Args: {'a': 4, 'b': 1}\nDefaults: {'a': 2, 'b': 1}\n",
        {"a": "4", "b": "1"},
    ),
    "nothing": ("", {}),
}


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_what_is_printed(text: str, expected: dict[str, str]) -> None:
    assert printed_settings(text).known == expected


def test_secrets_are_left_out() -> None:
    text = "Namespace(lr=0.1, hub_token='hf_abcdefghijklmnopqrstuvwxyz', api_key='0123456789abcdef')"
    assert printed_settings(text).known == {"lr": "0.1"}


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True).filter(lambda name: "loss" not in name),
        st.one_of(st.integers(), st.booleans(), st.from_regex(r"[a-zA-Z0-9 ._/-]{0,20}", fullmatch=True)),
        min_size=1,
        max_size=20,
    )
)
def test_any_dictionary_comes_back(config: dict[str, object]) -> None:
    found = printed_settings(f"config {config!r}\n").known
    expected = {name: str(value) for name, value in config.items()}
    assert found.items() <= expected.items()
    # Names that sound secret are left out.
    assert {
        n for n in expected if not any(w in n for w in ("key", "token", "pw", "pat", "auth"))
    } <= found.keys()


@given(st.text(max_size=2000))
def test_any_text_is_read(text: str) -> None:
    assert len(printed_settings(text).known) <= MOST


@pytest.mark.parametrize(
    "text",
    ["a." * LONGEST, '{"a":' * 30_000, "args(" * 30_000, 'x = {"a": [' + "1," * 90_000, "INFO " * 90_000],
)
def test_hostile_text_takes_no_time(text: str) -> None:
    began = time.process_time()
    printed_settings(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("config.json", '{"a": {"b": 1}, "c": [true, 2]}', {"a.b": "1", "c": "[True, 2]"}),
        ("hparams.yaml", "lr: 0.1\nopt:\n  name: adam\n", {"lr": "0.1", "opt.name": "adam"}),
        ("config.json", "{broken", {}),
        ("config.yaml", "a: [b", {}),
        ("config.yaml", "!!python/object:os.system {}", {}),
        ("config.json", "[1, 2]", {}),
        ("config.json", '{"hub_token": "hf_abcdefghijklmnopqrstuvwxyz"}', {}),
    ],
)
def test_what_is_saved(name: str, text: str, expected: dict[str, str]) -> None:
    assert read_saved(name, text) == expected


def test_the_source_that_a_traceback_quotes_is_no_configuration() -> None:
    log = "width: 4\nTraceback (most recent call last):\n    self.dtype = np.dtype(dtype)\nTypeError: no\n"
    assert printed_settings(log).known == {"width": "4"}
