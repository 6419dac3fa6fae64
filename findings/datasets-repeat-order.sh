#!/bin/sh
# shuffle().repeat() of a datasets stream plays the same order again in each pass, for as long as it runs.
#
# Expect    `stream.shuffle(seed=7, buffer_size=...).repeat(None)` is the endless stream that a trainer bounded
#           by steps asks for, shuffled anew in each pass, as tf.data does for the same two calls.
# Happens   Every pass has the order of the first. Only `set_epoch` changes it, and it takes effect when
#           an iteration starts; an endless stream starts once, so a trainer that calls set_epoch at the end of an
#           epoch never comes to call it. `repeat().shuffle()` does vary, but mixes passes: a sample comes twice
#           before another has come at all.
# Versions  datasets 5.2.0.
# Hurts     Long runs by steps on a repeated stream: the batches of pass 1 return, whole and in order, until the
#           end. The loss has a ripple of the period of a pass, and a slow shard is slow at the same steps.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check datasets==5.2.0

cat >"$room/probe.py" <<'PY'
from importlib.metadata import version
from itertools import islice

import datasets

ROWS, PASSES = 60, 20

stream = datasets.Dataset.from_dict({"row": list(range(ROWS))}).to_iterable_dataset(num_shards=4)
shuffled = stream.shuffle(seed=7, buffer_size=20)


def passes(repeated):
    """Return the rows of an endless stream, pass by pass."""
    rows = [sample["row"] for sample in islice(repeated, ROWS * PASSES)]
    return [tuple(rows[start : start + ROWS]) for start in range(0, len(rows), ROWS)]


def epochs():
    """Return the rows of epochs that the loop announces itself."""
    found = []
    for epoch in range(PASSES):
        shuffled.set_epoch(epoch)
        found.append(tuple(sample["row"] for sample in shuffled))
    return found


announced = epochs()
shuffled.set_epoch(0)
endless = passes(shuffled.repeat(None))
mixed = passes(stream.repeat(None).shuffle(seed=7, buffer_size=20))

print("datasets", version("datasets"))
print("first rows of pass 1, 2, 20 of shuffle().repeat():", *(list(endless[at][:6]) for at in (0, 1, 19)))
print(f"orders in {PASSES} passes, shuffle().repeat(): {len(set(endless))}")
print(f"orders in {PASSES} passes, set_epoch before each: {len(set(announced))}")
print(f"distinct rows in the first {ROWS} of repeat().shuffle(): {len(set(mixed[0]))}")

assert endless[0] != tuple(range(ROWS)) and all(set(rows) == set(range(ROWS)) for rows in endless)
assert len(set(endless)) == 1, "the passes of shuffle().repeat() differ now"
assert len(set(announced)) == PASSES
assert len(set(mixed[0])) < ROWS, "repeat().shuffle() no longer mixes passes"
print("every pass has the order of the first")
PY
"$room/venv/bin/python" "$room/probe.py" || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
