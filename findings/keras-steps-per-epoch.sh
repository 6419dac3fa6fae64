#!/bin/sh
# Keras with `steps_per_epoch` below the length of a PyDataset: epochs of 6, 4, 6, 4 steps, on rows shuffled midway.
#
# Expect    `fit(data, epochs=5, steps_per_epoch=6)` on ten batches is 30 steps: each epoch begins the dataset
#           anew, or goes on where the last one stopped and wraps around.
# Happens   An epoch goes on where the last one stopped, and ends early where the dataset ends: 6, 4, 6, 4, 6
#           are 26 steps. Keras warns that it interrupts training, and trains on. It also calls `on_epoch_end` after
#           each of its epochs, in the middle of a pass: a dataset that shuffles there, as is usual, deals new rows to
#           the batches that are left, so a pass shows some rows twice and others never.
# Versions  keras 3.15.1 with jax 0.10.2, numpy 2.4.6.
# Hurts     Long trainings that cut big epochs into short ones to validate and save more often: figures per epoch
#           swing between two levels, every other one is computed from fewer steps, and rows are lost.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check \
  keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6

cat >"$room/probe.py" <<'PY'
import warnings
from importlib.metadata import version

import keras
import numpy

BATCHES, SIZE, STEPS, EPOCHS = 10, 4, 6, 5


class Shuffled(keras.utils.PyDataset):
    """Deal rows to ten batches, and shuffle them when an epoch ends."""

    def __init__(self):
        super().__init__(workers=0)
        self.draw = numpy.random.default_rng(0)
        self.order = self.draw.permutation(BATCHES * SIZE)
        self.reads = []

    def __len__(self):
        return BATCHES

    def __getitem__(self, index):
        rows = self.order[index * SIZE : (index + 1) * SIZE]
        self.reads.append((index, rows.tolist()))
        return rows.reshape(SIZE, 1).astype("float32"), numpy.zeros((SIZE, 1), "float32")

    def on_epoch_end(self):
        self.draw.shuffle(self.order)


class Steps(keras.callbacks.Callback):
    """Count the steps of each epoch."""

    def __init__(self):
        super().__init__()
        self.epochs = []

    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.append(0)

    def on_train_batch_end(self, batch, logs=None):
        self.epochs[-1] += 1


def train(steps):
    """Return the steps of each epoch, the rows of the first whole pass, and the warnings."""
    data, count = Shuffled(), Steps()
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data, epochs=EPOCHS, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=[count])
    one_pass = data.reads[1 : 1 + BATCHES]
    assert [index for index, _ in one_pass] == list(range(BATCHES))
    rows = [row for _, batch in one_pass for row in batch]
    return count.epochs, len(set(rows)), sum("interrupting training" in str(item.message) for item in caught)


print("keras", version("keras"), "jax", version("jax"), "numpy", version("numpy"))
whole, cut = train(None), train(STEPS)
print(f"whole epochs: steps {whole[0]}, distinct rows of the first pass {whole[1]} of {BATCHES * SIZE}")
print(f"steps_per_epoch={STEPS}: steps {cut[0]}, distinct rows of the first pass {cut[1]} of {BATCHES * SIZE}")
print("warnings that training is interrupted:", cut[2])
assert whole == ([BATCHES] * EPOCHS, BATCHES * SIZE, 0)
assert cut[0] == [6, 4, 6, 4, 6], "the epochs have other steps now"
assert cut[1] < BATCHES * SIZE, "a pass shows each row once now"
assert cut[2] == 2
print(f"{sum(cut[0])} steps of {STEPS * EPOCHS}")
PY
KERAS_BACKEND=jax JAX_PLATFORMS=cpu "$room/venv/bin/python" "$room/probe.py" || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
