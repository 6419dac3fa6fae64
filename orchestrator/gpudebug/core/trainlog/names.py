"""What a printed name means: a loss, a step, an epoch, a duration.

Words decide, never a framework. Digits in names are zeroed before they come here: `valid_1's l2` arrives as
`valid_0's l0`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from gpudebug.core.lazy import regex
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
    "before after decimal improved improve"
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
    "step steps iter iters iteration iterations iterat itr it update updates batch batches round rounds "
    "gstep minibatch minibatches"
)
_SEVERAL_STEPS = word_set("steps iters iterations updates batches rounds epochs")
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
    if _FILE.search(name) or name == "ERROR":
        return Role("")
    parts = words(name)
    while len(parts) > 1 and parts[-1] in ("idx", "index", "i", "id", "no", "is"):
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
    if "epochs" in bag and not bag & (_STEP | _NOT_A_STEP):
        return Role("epochs", phase)
    if "epoch" in bag and not bag & (_NOT_A_STEP | _LIMIT | {"loss"}) and not bag & _STEP:
        return Role("epoch", phase, about=about)
    if bag & _OTHER_COUNT and not bag & (_NOT_A_STEP - {"env"}) and "len" not in bag and "mean" not in bag:
        if last in _OTHER_COUNT or last in _STEP:
            return Role("other", phase)
    elif last in _STEP and not bag & _NOT_A_STEP:
        if bag & _LIMIT and not bag & {"update", "updates"}:
            return Role("limit", phase)
        tier = 2 if bag & (_CRITIC | _POLICY | _ADVERSARIAL) else 0 if bag & _STRONG_STEP else 1
        return Role("step", phase, tier, about=about)
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
    if any(counted in _SEVERAL_STEPS and word == "in" for counted, word in pairwise(parts)):
        return None  # `50 iterations in 0.13 sec`
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
