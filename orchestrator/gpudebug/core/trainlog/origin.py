"""Where a line is from: which process of a job printed it, which framework, and if it quotes source code.

`[default0]:` and `[rank0]:` of torchrun, `0: ` of srun, `[1,0]<stdout>:` of mpirun, `[Rank 0]` of DeepSpeed,
`(0/8)` behind a place in the source of icefall, `rank 0` in the words of a line. A line may carry several.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.text import Span

MOST_LABELS = 4
MOST_RANKS = 64
FEWEST_FALLS = 2
ORDERED, ORDERED_FALLS = 4, 4
"""So few labels may come in order by chance; a counter that begins again as often is not so short."""

_WHO = r"(?:default|(?:local_|global_)?rank|gpu|cuda|node|worker|proc(?:ess)?)"
_FIRST = tuple(
    regex(pattern, re.I)
    for pattern in (
        rf"\W{{0,3}}\[{_WHO}[ :=_#-]{{0,3}}(?P<rank>0{{1,5}})\]:? ?",
        r"\[[a-z_]{1,24}(?P<rank>0{1,5})\]: ?",  # torchrun names its workers by the role.
        r"\[(?:0{1,5},)?(?P<rank>0{1,5})\]<std(?:out|err)>:? ?",
        rf"\W{{0,3}}{_WHO}[ :=_#-]{{0,3}}(?P<rank>0{{1,5}})(?: ?[:|>] ?|, )",
        r"\[[\w.-]{1,60}:(?P<rank>0{1,5})/0{1,5}\] (?=0000-00-00)",  # ESPnet.
    )
)
_RAY = regex(r"\([\w.:, ]{0,60}pid=(?P<rank>0+)[^)]{0,60}\) ?")
_NUMBERED = regex(r" {0,5}(?P<rank>0{1,5}): (?=\S)")
_WITHIN = regex(
    rf"\[{_WHO}[ :=_#-]{{0,3}}(?P<rank>0{{1,5}})\]:?"
    r"|\.py:0{1,5}\] \((?P<of>0{1,5})/0{1,5}\)(?= )"
    r"|(?<![\w./])(?<!mean )(?<!avg )(?<!average )(?<!median )(?:local_|global_|dp_)?rank['\"]?[ :=_#-]{0,3}"
    r"(?P<word>0{1,5})(?![\w.%]|,0)",
    re.I,
)
_HINT = regex(
    r"rank|pid=|<std|(?:^|: )\W{0,4}\[?[A-Za-z]{3,20}[ :=_#-]{0,3}0|\.py:0{1,5}\] \(|/0+\] 0000-", re.I
)


@dataclass(frozen=True, slots=True)
class RankPlaces:
    """Where a line's labels are, that of a process which has no rank, and a number that may be a label."""

    sure: tuple[Span, ...] = ()
    process: Span | None = None
    numbered: Span | None = None


NO_RANKS = RankPlaces()


def find_ranks(text: str) -> tuple[str, RankPlaces]:
    """Return the skeleton with its labels masked, and their places; a lone number ahead of the line stays."""
    sure: list[Span] = []
    first = _NUMBERED.match(text)
    numbered, at = (first.span("rank"), first.end()) if first else (None, 0)
    if not _HINT.search(text):
        return text, RankPlaces(numbered=numbered)
    ray = _RAY.match(text, at)
    process = ray.span("rank") if ray else None
    if ray:
        text, at = _blanked(text, *ray.span()), ray.end()
    while len(sure) < MOST_LABELS:
        found = next((match for pattern in _FIRST if (match := pattern.match(text, at))), None)
        if found is None:
            break
        sure.append(found.span("rank"))
        text, at = _blanked(text, *found.span()), found.end()
    while len(sure) < MOST_LABELS:
        within = _WITHIN.search(text, at)
        if within is None:
            break
        name = within.lastgroup or "rank"
        sure.append(within.span(name))
        start = within.start() if name != "of" else within.start("of") - 1
        text, at = text[:start] + "~" * (within.end() - start) + text[within.end() :], within.end()
    if numbered and (sure or process):
        sure.insert(0, numbered)
        text, numbered = _blanked(text, 0, numbered[1] + 1), None
    return text, RankPlaces(tuple(sure), process, numbered)


def _blanked(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]


def rank_of(text: bytes, places: RankPlaces) -> str:
    """Return the process that printed a line, by all its labels: `0`, or `1/0` where they differ, `pid 71`
    without a rank; empty if the line says nothing."""
    labels: list[str] = []
    for start, end in places.sure:
        label = text[start:end].decode("ascii").lstrip("0") or "0"
        if not labels or label != labels[-1]:
            labels.append(label)
    if not labels and places.process:
        labels.append(f"pid {text[slice(*places.process)].decode('ascii')}")
    return "/".join(labels)


def order_of(rank: str) -> list[int]:
    """Return the order of ranks: the lowest speaks for a job. Processes without one are alike."""
    return [int(part) if part.isdecimal() else 0 for part in rank.split("/")]


@dataclass(slots=True)
class NumberedLines:
    """Whether the number ahead of lines is a label, as of `srun --label`, or a counter.

    A counter rises by ones, or in equal steps, and begins again now and then; labels are the numbers from 0
    on, in any order.
    """

    _last: int = -1
    _falls: int = 0
    _jumps: int = 0
    _seen: set[int] = field(default_factory=set)

    def add(self, value: int) -> None:
        """Takes in the number ahead of the next line."""
        self._falls += value < self._last
        self._jumps += value not in (0, self._last, self._last + 1)
        self._last = value
        if len(self._seen) <= MOST_RANKS:
            self._seen.add(value)

    @property
    def labels(self) -> bool:
        """Whether it is a label, by the lines so far."""
        count = len(self._seen)
        if not 1 < count <= MOST_RANKS or max(self._seen) >= count:
            return False
        ordered = count <= ORDERED and self._falls >= ORDERED_FALLS
        return ordered or (self._falls >= FEWEST_FALLS and self._jumps >= FEWEST_FALLS)


_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("sb3", ("Wrapping the env", "stable_baselines0", "|    ep_rew_mean ")),
    ("rsl_rl", ("Mean value_function loss", "Learning iteration 0", "rsl_rl")),
    ("skrl", ("[skrl:",)),
    ("lerobot", ("ot_train.py:0", "lerobot", " smpl:0")),
    ("lightning", ("lightning", "`Trainer.fit`", "v_num")),
    ("mmengine", ("mmengine", "mmcv")),
    ("megatron", ("elapsed time per iteration (ms)", "megatron")),
    ("torchtune", ("torchtune",)),
    ("torchtitan", ("torchtitan", "[titan]")),
    ("hf_trainer", ("'train_runtime'", "'grad_norm': ", "[transformers]", "transformers/trainer.py")),
    ("accelerate", ("Distributed environment: ",)),
    ("nanogpt", ("tokens per iteration will be",)),
    ("timm", ("timm",)),
    ("cleanrl", ("cleanrl",)),
    ("ultralytics", ("Ultralytics", "box_loss   cls_loss")),
    ("detectron2", ("d0.utils.events", "detectron0")),
    ("catboost", ("catboost", "CatBoost")),
    ("lightgbm", ("[LightGBM]", "lightgbm", "valid_0's ", "training's ")),
    ("xgboost", ("xgboost",)),
    ("fairseq", ("fairseq", "train_inner")),
    ("paddle", ("batch_cost: ", "paddle")),
    ("spacy", ("LOSS TOK0VEC", "spacy")),
    ("rllib", ("RLlib", "rllib")),
    ("deepspeed", ("deepspeed", "DeepSpeed")),
    ("nemo", ("nemo_logging", "NeMo")),
    ("tensorflow", ("tensorflow",)),
    ("keras", ("keras",)),
    ("fastai", ("epoch     train_loss  valid_loss", "fastai")),
    ("torchrun", ("torch/distributed/run.py", "torch/distributed/elastic")),
)
_STARTS = regex(
    r"(?P<autoresearch>step 0+ \(0+\.0%\) \| loss: 0)"
    r"|(?P<nanogpt>iter 0+: loss \S+, time 0)"
    r"|(?P<timm>Train: 0+ \[ *0+/0+ \( *0+%\)\] +Loss: )"
    r"|(?P<pytorch_mnist>Train Epoch: 0+ \[0+/0+ \(0+%\)\])"
    r"|(?P<cleanrl>SPS: 0)"
    r"|(?P<catboost>0+:\s+learn: )"
    r"|(?P<xgboost>\[0+\]\ttrain-\w+:0)"
    r"|(?P<keras> *0+/0+ .{0,80}(?:ms|us|s)/step)"
    r"|(?P<torchrun>\[default0+\]:)"
)
OF_ENVIRONMENTS = frozenset(("sb3", "rsl_rl", "skrl", "cleanrl", "rllib"))
HEAD = 600
_SEVERAL = regex(r"(?:\b(?:tensorflow|jax|paddle|pytorch|torch|mxnet)\b[\w.]*(?:, | and | or )+){2}", re.I)
"""A list of what a library may run on."""

_AS_A_MODULE = {
    mark: regex(rf"[/\[.@'\"]{mark}\b|\b{mark}(?:[/\]:_@-]|\.[a-z]|\d)")
    for _, marks in _MARKS
    for mark in marks
    if mark.isalpha() and mark.islower()
}
"""Bare names count as those of a module, a path or a logger: a banner may name any library."""


def recognise(skeleton: str) -> str | None:
    """Return the framework whose mark is in a line with its digits zeroed, or None."""
    head = skeleton[:HEAD].rpartition("site-packages/")[2]  # An environment's own name says nothing.
    if _SEVERAL.search(head):
        return None
    for name, marks in _MARKS:
        for mark in marks:
            if mark in head and (mark not in _AS_A_MODULE or _AS_A_MODULE[mark].search(head)):
                return name
    match = _STARTS.match(head)
    return match.lastgroup if match else None


MAX_HEADS = 32
SOURCES = 16
"""Lines below one frame: source over several lines and its markers."""

STRAYS = 4
"""Lines of another process that may stand between a frame and its source."""

LISTING = 1000
DEEPER = 2
"""Columns by which source is right of its frame or its warning."""

_PLACE = regex(rb'", line 0+(?:, in .*)?$')
"""Where source follows; a dump of the interpreter's own (`line 3 in f`) has none."""

_RAISED = regex(rb"[A-Za-z_][\w.]{0,120}(?:: |:?$)")
_WARNING = regex(rb"\.py:0+: \w*Warning: ")
_CODE = regex(rb"\(|[\w\])] [-+*/|&]?= ")
_LISTED = regex(rb"(?:-+> ?|\s*)0+(?:\s|$)")
_NAME = regex(rb"\s*[A-Za-z_][\w.]{0,120}\s{2,}$")
_SIDE = regex(rb"[^|\xe2%]{0,80}(?:\xe2\x94[\x82\x83]|\|)")
_CORNER = b"\xe2\x95\xad"


@dataclass(slots=True)
class _Frame:
    indent: int
    sources: int = SOURCES
    strays: int = STRAYS


def may_quote(skeleton: bytes) -> bool:
    """Tell whether a line may begin a quotation of source: a frame, or a warning with its place."""
    return b'File "' in skeleton or b"Warning: " in skeleton


class SourceLines:
    """Follows the tracebacks of a log, those of several ranks at once, in bounded memory."""

    def __init__(self) -> None:
        self._frames: dict[bytes, _Frame] = {}
        self._warned: bytes | None = None
        self._box = 0
        self._listing = 0

    @property
    def following(self) -> bool:
        """Whether lines may be of a quotation that has begun."""
        return bool(self._frames or self._box or self._listing or self._warned is not None)

    def traceback(self, before: bytes, segment: bytes) -> None:
        """Takes in a traceback's first line; `before` is what it prints ahead of the word itself."""
        if _CORNER in segment or before.lstrip()[:2] == b"+-":
            self._box = STRAYS
        elif _NAME.match(before):
            self._listing = LISTING

    def quotes(self, line: bytes, segment: bytes) -> bool:
        """Tell whether a line is a frame, source or a marker; `segment` is the line as it came."""
        warned, self._warned = self._warned, None
        if b'File "' in line and self._frame(line):
            return True
        if self._frames and self._source(line):
            return True
        if self._box and self._boxed(segment):
            return True
        if self._listing and self._listed(line):
            return True
        if warned is not None and _below(line, warned):
            return True
        if b"Warning: " in line:
            self._warned = _warning_head(line)
        return False

    def _frame(self, line: bytes) -> bool:
        at = line.find(b'File "')
        end = line.find(b'", line 0', at)
        if end < 0:
            return False
        head = line[:at].rstrip(b" >")
        if _PLACE.match(line, end):
            if len(self._frames) >= MAX_HEADS:
                self._frames.clear()
            self._frames[head] = _Frame(at - len(head))
        return True

    def _source(self, line: bytes) -> bool:
        head = max((head for head in self._frames if line.startswith(head)), key=len, default=None)
        if head is None:
            return False
        frame = self._frames[head]
        body = line[len(head) :].lstrip()
        depth = len(line) - len(head) - len(body)
        if depth > frame.indent:
            if frame.sources and (frame.strays == STRAYS or depth == frame.indent + DEEPER):
                frame.sources -= 1
                return True
            return False
        frame.strays -= 1
        if not frame.strays or _RAISED.match(body):
            del self._frames[head]
        return False

    def _boxed(self, segment: bytes) -> bool:
        if _SIDE.match(segment):
            return True
        self._box = 0 if b"\xe2\x95\xb0" in segment or b"+-" in segment else self._box - 1
        return False

    def _listed(self, line: bytes) -> bool:
        self._listing -= 1
        if _LISTED.match(line):
            return True
        if _RAISED.match(line):
            self._listing = 0
        return False


def _warning_head(line: bytes) -> bytes | None:
    """Return the text before the path of a warning's file; None if the line is not a Python warning."""
    at = line.find(b".py:0")
    if at < 0 or not _WARNING.match(line, at):
        return None
    return line[: max(line.rfind(sign, 0, at) for sign in (b" ", b":", b"]")) + 1]


def _below(line: bytes, head: bytes) -> bool:
    """Tell whether a line is the source that a warning quotes: two columns in, and like code."""
    body = line[len(head) :]
    return (
        line.startswith(head) and len(body) - len(body.lstrip()) == DEEPER and _CODE.search(body) is not None
    )
