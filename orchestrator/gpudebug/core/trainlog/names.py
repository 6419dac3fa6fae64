"""What a printed name means: a loss, a step, an epoch, a duration; and tables whose names are in a head.

Words decide, never a framework. Digits in names are zeroed before they come here: `valid_1's l2` arrives as
`valid_0's l0`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.text import NUMBER, Span, number, skeleton, total
from gpudebug.core.words import word_set

_WORD = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LEVEL = regex(r"(?:^|[^a-z])l0$")
_FILE = regex(r"\.(?:py|cc|cpp|cu|c|h|hpp|rs|go|json|ya?ml|txt|csv|pt|pth|bin|log)$", re.I)
_RATE = regex(r"(?:/|_per_|\bper )s(?:ec|econd)?\b|per_sec", re.I)

LONGEST_NAME = 80
NO_COURSE = 5
"""From this tier on losses need not fall where a program learns: a critic's, then a policy's, an entropy."""


VALIDATION = word_set(
    "val valid validation validating eval evaluation evaluating test testing dev holdout heldout "
    "oof vali cv sanity predict predicting prediction"
)
TRAINING = word_set("train training trn tr learn")

_FILLER = (
    TRAINING
    | VALIDATION
    | word_set(
        "step steps epoch iter iteration batch minibatch avg avr average mean running smoothed smooth "
        "ema moving total overall lm global current cur so far value final all reduced per token "
        "sample s the is last log main interval sum item tot window micro rank local"
    )
)
_NOT_A_LOSS = word_set(
    "scale scaler weight weights coef coeff coefficient factor alpha beta gamma lambda type fn "
    "func name ratio threshold reduction freq frequency every lr norm patience count num number "
    "smoothing clip eps diff std var time margin decay temperature accuracy acc "
    "rate tokens best min minimum lowest lowest max id scaling spike spikes bound skip kind "
    "before after decimal"
)
_METRIC = word_set(
    "nll xent mse rmse mae mape huber crossentropy deviance objective obj bpb bpc elbo logloss "
    "nloglik cost learn ce rmsle"
)
_WEAK = word_set("ppl perplexity error err merror")
_SECONDARY = word_set(
    "actor policy surrogate entropy ent kl pg alpha aux auxiliary penalty regularization reg l "
    "discount load balancing z router symmetry estimation"
)

_CRITIC = word_set("value values vf v critic qf q")
_POLICY = word_set("actor policy surrogate pg pi entropy ent kl curiosity")

_ADVERSARIAL = word_set("d g disc discriminator gen generator gan adv adversarial")
"""Each of two opponents' losses rises as the other learns."""

_RESTORED = word_set("pix pixel percep perceptual fea feat style ssim tv gan adv")
"""Behind `l_`: what a restoring network's losses are of, as `l_g_pix` of BasicSR."""

_SHORT: dict[tuple[str, ...], str] = {("trl",): "train", ("tel",): "val"}
"""llm.c's: train loss and test loss."""

_STEP = word_set(
    "step steps iter iters iteration iterations itr it update updates batch batches round rounds "
    "gstep minibatch minibatches"
)
_STRONG_STEP = word_set("step steps update updates gstep")
_OTHER_COUNT = word_set("timestep timesteps frame frames episode episodes env ts")
_NOT_A_STEP = word_set(
    "per every skipped nan accumulation warmup eval save saving logging log freq frequency interval time "
    "size sec secs second seconds s ms inference tokens examples samples remaining loss cost avg mean "
    "timing lr decay action obs observation chunk horizon denoising tok flops speed fps reward patience "
    "checkpoint ckpt until best since from resume resuming stop stopping"
)
_LIMIT = word_set("max total maximum num number target")

_DURATION = word_set("time sec secs second seconds s t ms us duration dur cost wait timing dt wall")
_DATA = word_set(
    "data dataload dataloading dataloader loader loading load fetch fetching reader collection "
    "collect datatime dataset sample"
)
_UPDATE = word_set("update updt upd learning optim optimizer optimization compute computation model")
_GRADIENT = frozenset(["norm", "gnorm", "grdn"])
_PARTS = word_set("forward backward fwd bwd comm allreduce reduce sync optimizer optim clip")
_PER_STEP = _DURATION | _STEP | word_set("elapsed per train training in avg average mean batchtime itertime")
_LASTS = word_set("time sec secs second seconds duration dur took taken elapsed")
_OF_EPOCH = _LASTS | word_set("epoch ms s for per this train training in of each")
_CUMULATIVE = word_set("eta remaining runtime total last max min eval val wall left estimated")


@dataclass(frozen=True, slots=True)
class Role:
    """What a name means.

    `kind`: loss, step, other (a count that is no optimiser step), epoch, epochs, limit, data, update,
    total (duration of one whole step), part (of it), round (of a whole epoch), rate (steps per second),
    gradient, or empty.
    `phase`: train, val or empty. `tier` orders losses: 0 the loss itself, 1 a part of it, 2 a metric
    that acts as one, 3 and 4 what says less, from NO_COURSE on
    parts of a reinforcement learner's. `scale` turns a duration in the name's unit into seconds;
    `about` is the loss in `loss at step 5: 2.5`.
    """

    kind: str
    phase: str = ""
    tier: int = 0
    scale: float = 1.0
    about: str = ""


def words(name: str) -> list[str]:
    """Lower-case words of a name, camel case and digits taken apart."""
    return [word.lower() for word in _WORD.findall(name)]


def phase_of(parts: list[str]) -> str:
    if any(word in VALIDATION for word in parts):
        return "val"
    return "train" if any(word in TRAINING for word in parts) else ""


def classify(name: str) -> Role:
    """Return the role of a name whose digits are zeroed."""
    return _classify(name) if len(name) <= LONGEST_NAME else Role("")


@lru_cache(maxsize=4096)
def _classify(name: str) -> Role:
    if _FILE.search(name):
        return Role("")
    parts = words(name)
    while len(parts) > 1 and parts[-1] in ("idx", "index", "id", "no", "is"):
        parts.pop()
    if tuple(parts) in _SHORT:
        return Role("loss", _SHORT[tuple(parts)])
    if not parts:
        return Role("step", about="#") if name.strip() == "#" else Role("")
    bag = frozenset(parts)
    phase = phase_of(parts)
    if "epoch" in bag and bag & _LASTS and bag <= _OF_EPOCH:
        scale = 1e-3 if "ms" in bag else 1.0
        return Role("round", phase, scale=scale)
    return (
        _position(name, parts, bag, phase)
        or _loss(name, parts, bag, phase)
        or _duration(name, parts, bag, phase)
        or Role("gradient" if bag & _GRADIENT else "part" if _is_part(bag) else "", phase)
    )


def _is_part(bag: frozenset[str]) -> bool:
    """Tell whether a name is that of a part of a step's duration, as `forward_time`."""
    return bool(bag & _DURATION and bag & _PARTS and not bag & _CUMULATIVE)


def _position(name: str, parts: list[str], bag: frozenset[str], phase: str) -> Role | None:
    if _RATE.search(name) or parts == ["ups"]:
        return Role("rate", phase) if bag & (_STEP | {"ups"}) and not bag & VALIDATION else Role("", phase)
    last = parts[-1]
    about = ""
    if parts == ["up"]:  # Marian's updates.
        return Role("step", phase)
    if bag & {"loss", "score"} and last in _STEP | {"epoch"} and bag & {"at", "after", "on", "in", "for"}:
        cut = next(i for i, word in enumerate(parts) if word in ("at", "after", "on", "in", "for"))
        about = " ".join(parts[:cut])
        bag, parts = frozenset(parts[cut + 1 :]), parts[cut + 1 :]
        if not parts:
            return None
    if "epochs" in bag and not bag & _STEP:
        return Role("epochs", phase)
    if "epoch" in bag and not bag & (_NOT_A_STEP | _LIMIT | {"loss"}) and not bag & _STEP:
        return Role("epoch", phase, about=about)
    if bag & _OTHER_COUNT and not bag & (_NOT_A_STEP - {"env"}) and "len" not in bag and "mean" not in bag:
        if last in _OTHER_COUNT or last in _STEP:
            return Role("other", phase)
    elif last in _STEP and not bag & _NOT_A_STEP:
        if bag & _LIMIT and not bag & {"update", "updates"}:
            return Role("limit", phase)
        return Role("step", phase, tier=0 if bag & _STRONG_STEP else 1, about=about)
    return None


def _loss(name: str, parts: list[str], bag: frozenset[str], phase: str) -> Role | None:
    if bag & _NOT_A_LOSS:
        return None
    named = [
        word for word in parts if word in ("loss", "losses") or (word.endswith("loss") and word != "gloss")
    ]
    rest = bag - _FILLER - set(named)
    if {"cross", "entropy"} <= rest:
        rest = rest - {"cross", "entropy"} | {"ce"}
    if named and "value" in parts[: parts.index(named[0])]:
        rest |= {"critic"}  # `value loss`, not `loss value`.
    if named:
        if not rest:
            return Role("loss", phase, tier=0 if named[0] in ("loss", "losses") else 2)
        if rest & (_CRITIC | _POLICY | _ADVERSARIAL):
            return Role("loss", phase, tier=NO_COURSE + bool(rest & _POLICY))
        return Role("loss", phase, tier=3 if rest & _SECONDARY else 1)
    if parts[0] == "l" and bag & _RESTORED and not bag & {"d"}:
        return Role("loss", phase, tier=1 if bag & {"pix", "pixel"} else 3)
    if bag & {"batch", "reader", "data"} and "cost" in bag:
        return None
    if rest <= _METRIC and (rest or bag & _METRIC):
        return Role("loss", phase, tier=2)
    if _LEVEL.search(name.lower()) and not rest - {"l"}:
        return Role("loss", phase, tier=2)
    if bag & _WEAK and not rest - _WEAK:
        return Role("loss", phase, tier=4)
    return None


def _duration(name: str, parts: list[str], bag: frozenset[str], phase: str) -> Role | None:
    if parts == ["t"]:
        return None
    scale = 1e-3 if "ms" in bag else 1e-6 if "us" in bag else 1.0
    if bag & _CUMULATIVE or phase == "val":
        return None
    if bag & _DATA and not bag & _NOT_DATA and (bag & _DURATION or len(bag) == 1):
        return Role("data", phase, scale=scale, tier=0 if bag & _DURATION else 1)
    if (
        bag & _UPDATE
        and bag <= _UPDATE | _DURATION | _PER_STEP
        and (bag & _DURATION or parts == ["learning"])
    ):
        return Role("update", phase, scale=scale, tier=0 if bag & _DURATION else 1)
    if bag & _DURATION and bag <= _PER_STEP and bag not in ({"elapsed", "time"}, {"train", "time"}):
        return Role("total", phase, scale=scale)
    if name.lower() in ("step_avg",):
        return Role("total", phase, tier=1)
    return None


_NOT_DATA = word_set("size sets type path num number parallel shape dir root")

MAX_COLUMNS = 200
_COUNTERS = ("step", "epoch", "other", "limit", "epochs")


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    role: Role
    start: int


@dataclass(frozen=True, slots=True)
class Head:
    """A table's head: its delimiter and columns with the place where each begins."""

    sign: str
    columns: tuple[Column, ...]

    @property
    def measures(self) -> bool:
        """Whether a row tells what was reached by its counter, and not of an evaluation alone."""
        return any(c.role.phase != "val" and c.role.kind not in _COUNTERS for c in self.columns)


def read_head(text: bytes, sign: str, cells: tuple[Span, ...]) -> Head:
    columns = []
    names = [text[a:b].decode("ascii", "replace").strip("'\" ") for a, b in cells[:MAX_COLUMNS]]
    summed = sums_parts(names)
    for name, (start, _) in zip(names, cells, strict=False):
        total = summed and name.lower() == "total"
        role = Role("loss") if total else classify(skeleton(name.encode()).decode())
        columns.append(Column(name.lower(), role, start))
    return Head(sign, tuple(columns))


def read_row(
    head: Head, text: bytes, rows: tuple[tuple[str, tuple[Span, ...]], ...]
) -> list[tuple[Column, float, float | None]] | None:
    """(column, value, total of a `n/total` cell) of a row under `head`; None if it is no row of it."""
    for sign, cells in rows:
        if sign != head.sign:
            continue
        if len(cells) == len(head.columns):
            return _values(head, [text[a:b] for a, b in cells])
        if sign == " " and b"\t" in text and len(cells) > len(head.columns):
            return _values(head, [text[a:b] for a, b in cells[: len(head.columns)]])
        if sign == " " and cells and len(cells) < len(head.columns):
            return _values(head, _by_place(head, text))
    return None


def _by_place(head: Head, text: bytes) -> list[bytes]:
    """Cells by the columns' places, for fixed widths in which wide numbers touch."""
    edges = [column.start for column in head.columns[1:]]
    return [text[a:b].strip() for a, b in zip([0, *edges], [*edges, len(text)], strict=True)]


def _values(head: Head, cells: list[bytes]) -> list[tuple[Column, float, float | None]] | None:
    found: list[tuple[Column, float, float | None]] = []
    for column, cell in zip(head.columns, cells, strict=True):
        if not column.role.kind:
            continue
        text, slash, rest = cell.strip(b"'\": ").partition(b"/")
        value = total(text.strip(b"[]"))
        if value is None:
            if column.role.kind in ("step", "epoch", "other"):
                return None
            continue
        found.append((column, value, number(rest) if slash else None))
    return found if any(column.role.kind != "total" for column, _, _ in found) else None


_PIPES = regex(r"\|")
_WIDE = regex(r"\s{2,}|\t+")
_SPACES = regex(r"\s+")
_CELLNUMBER = regex(
    r"[+-]?[0.,]+(?:[eE][+-]?0+)?[A-Za-z%]*:?$|[+-]?(?:nan|inf)$|0+/0+$|0+:[0:]+$|\[[0.,e+\-naif ]+\]$", re.I
)


def _split(text: str, pattern: re.Pattern[str], offset: int) -> tuple[Span, ...]:
    spans: list[Span] = []
    at = 0
    for match in [*pattern.finditer(text), None]:
        end = match.start() if match else len(text)
        cell = text[at:end]
        left = len(cell) - len(cell.lstrip())
        if cell.strip():
            spans.append((offset + at + left, offset + at + len(cell.rstrip())))
        elif pattern is not _SPACES and pattern is not _WIDE and (match or pattern is _COMMAS) and at:
            spans.append((offset + at, offset + at))
        at = match.end() if match else at
    return tuple(spans)


_PARTS_OF_A_DETECTOR = frozenset(
    ("box", "obj", "cls", "giou", "iou", "dfl", "kpt", "pose", "seg", "mask", "l0")
)
_PERCENT = regex(r"\s0{1,3}%[ |]")
_COMMAS = regex(",")
_COMMENT = regex(r"^ *#(?= +[A-Za-z])")
_DELIMITERS = {"|": _PIPES, ",": _COMMAS, " ": _SPACES}


def find_header(text: str) -> tuple[str, tuple[Span, ...]] | None:
    """(delimiter, cells) where a line is the head of a table whose columns include a loss."""
    if len(text) > 600 or ":" in text or "=" in text or "'" in text or NUMBER.search(text):
        return None
    text = _COMMENT.sub(lambda match: " " * len(match[0]), text)
    for sign, pattern in (("|", _PIPES), (",", _COMMAS), (" ", _WIDE), (" ", _SPACES)):
        if sign != " " and sign not in text:
            continue
        cells = _split(text, pattern, 0)
        names = [text[a:b].strip("'\" ") for a, b in cells]
        if len(cells) < 2 or any(len(name) > 40 or len(name.split()) > 4 for name in names):
            continue
        kinds = [classify(name).kind for name in names]
        if pattern is _SPACES and kinds[0] not in ("step", "epoch", "other"):
            continue
        counted = any(kind in ("step", "epoch", "other") for kind in kinds)
        if counted and sums_parts(names):
            return sign, cells
        if "loss" in kinds and (counted or (sign == "," and len(cells) > 2)):
            return sign, cells
        if kinds[0] in ("step", "epoch", "other") and (sign == "," or "\t" in text):
            return sign, cells
    return None


def sums_parts(names: Sequence[str]) -> bool:
    """Whether the columns are a detector's losses by their parts alone, with their total (YOLOv7's table)."""
    lower = {name.lower() for name in names}
    return "total" in lower and len(lower & _PARTS_OF_A_DETECTOR) > 1


def row_like(text: str) -> bool:
    start = text.lstrip(" |")[:1]
    return start == "0" or (start in "+-.ni" and "0" in text[:12]) or text.lstrip()[:1] == "|"


def find_rows(text: str, masked: bool) -> tuple[tuple[str, tuple[Span, ...]], ...]:
    """The ways in which a line may be a table's row, for the reader to match with the head in force."""
    bar = _PERCENT.search(text)
    cut = text.find("~") if masked else bar.start() if bar else -1
    body = text[:cut].rstrip(": ") if cut > 0 else text
    rows = []
    for sign, pattern in _DELIMITERS.items():
        if sign not in body and not (sign == " " and "\t" in body):
            continue
        cells = _split(body, pattern, 0)
        if sign == " " and "[" in body:
            cells = _split(body, _WIDE, 0)
        numeric = sum(1 for a, b in cells if _CELLNUMBER.match(body[a:b]))
        if (len(cells) >= 2 and numeric * 2 >= len(cells)) or (sign == "|" and len(cells) > 2 and numeric):
            rows.append((sign, cells))
    return tuple(rows)
