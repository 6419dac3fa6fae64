#!/bin/sh
# A row of spaCy's training table is the sum of the losses since the row above it.
#
# Expect    The column LOSS of a row is the loss at that step: a run that evaluates five times as rarely prints
#           the same values, only fewer of them, and a curve that starts high and falls.
# Happens   The losses are added up over all batches since the last evaluation. Rows five times as rare are five
#           times as large: at step 100 the row of every 50 steps is the sum of the five rows of every 10 steps.
#           The first row is that of one batch, so that the second looks like a loss that explodes. Nothing in
#           the table's head says so.
# Versions  spacy 3.8.18, spacy-loggers 1.0.5.
# Hurts     Who compares the losses of two runs after changing `training.eval_frequency`, which is the usual
#           remedy for evaluations that take most of the time; and tools that read the table as a curve.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check spacy==3.8.18 spacy-loggers==1.0.5
cd "$room"

cat >data.py <<'PY'
import random

import spacy
from spacy.tokens import DocBin

chance = random.Random(0)
blank = spacy.blank("en")
for name, size in (("train", 600), ("dev", 40)):
    texts = DocBin()
    for _ in range(size):
        text = blank(" ".join(chance.choice("red blue old new big".split()) for _ in range(12)))
        said = chance.random() < 0.5
        text.cats = {"yes": float(said), "no": float(not said)}
        texts.add(text)
    texts.to_disk(name + ".spacy")
PY
venv/bin/python data.py
venv/bin/python -m spacy init config train.cfg --lang en --pipeline textcat >/dev/null
for every in 10 50; do
    venv/bin/python -m spacy train train.cfg --paths.train train.spacy --paths.dev dev.spacy \
        --training.max_steps 100 --training.patience 0 --training.eval_frequency "$every" >"rows$every" 2>&1
done

cat >read.py <<'PY'
from importlib.metadata import version


def rows(every):
    cells = [line.split() for line in open(f"rows{every}")]
    return {int(row[1]): float(row[2]) for row in cells if len(row) > 3 and row[0].isdigit()}


often, rarely = rows(10), rows(50)
print("spacy", version("spacy"), "spacy-loggers", version("spacy-loggers"))
print("every 10 steps:", often)
print("every 50 steps:", rarely)
between = sum(often[step] for step in range(60, 101, 10))
print(f"at step 100: {often[100]} and {rarely[100]}; the rows 60 to 100 of the first together {between:.2f}")
assert rarely[100] > 3 * often[100], "rows are no longer larger where they are rarer"
assert abs(rarely[100] - between) <= 0.1 * between, "a row is no longer the sum since the row above it"
assert often[10] > 4 * often[0], "the first row is no longer that of one batch"
PY
venv/bin/python read.py || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
