"""Recordings that are trees: JSON, XML, and names that are indented below each other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from gpudebug.core.lazy import regex
from gpudebug.core.recordings import names as of
from gpudebug.core.recordings.cells import moment
from gpudebug.core.recordings.collect import Collector
from gpudebug.core.recordings.names import FIGURES, GRACT, NamedFigure, named
from gpudebug.core.recordings.sources import JSON, source_of
from gpudebug.core.recordings.tables import METRICS, NamedColumns

MOST_BYTES = 256 << 20
_MOST_DEPTH = 40
_DEVICE = regex(r"(?:gpu|card|npu|device|gcd)[ _:#\[]*([0-9][0-9A-Fa-f:.]{0,15})\]?", re.IGNORECASE)
_OF_GPUS, _NUMBER = regex(r"(?i)(gpu|card|npu|device)s?"), regex(r"(\d{1,3})")
_NOT_OF_NOW = regex(
    r"(?i)\b(max|min|applications?|default|limits?|thresholds?|supported|target|deferred|bar1|boost|"
    r"customer|requested|module|shutdown|slowdown|process(es)?|accounted|violations?|counters?|"
    r"mig devices?)\b"
)
# A file of statistics is no recording.
_STATISTIC = regex(r"mean|avg|average|median|std|peak|p\d{1,2}", re.IGNORECASE)
_UNITLESS = ("value", "unit")


class _Open:
    """A device whose figures are being gathered: names, cells, and what tells it from others."""

    def __init__(self) -> None:
        self.figures: list[NamedFigure] = []
        self.cells: list[str] = []

    def put(self, one: NamedFigure, cell: str) -> None:
        known = any(f.quantity == one.quantity and f.device == one.device for f in self.figures)
        if not known or (one.quantity in FIGURES and self._lacks(one)):
            self.figures.append(one)
            self.cells.append(cell)

    def _lacks(self, one: NamedFigure) -> bool:
        return all(
            cell in ("", "N/A")
            for f, cell in zip(self.figures, self.cells, strict=True)
            if (f.quantity, f.device) == (one.quantity, one.device)
        )

    @property
    def has_figures(self) -> bool:
        return any(f.quantity in (*FIGURES, GRACT) for f in self.figures)

    @property
    def is_named(self) -> bool:
        return any(f.quantity in of.IDENTITIES for f in self.figures)


class TreeReader:
    """Takes documents in order: each is one reading of all devices in it."""

    def __init__(self, collector: Collector, other: str = JSON) -> None:
        self._collector = collector
        self._other = other
        self._source: str | None = None
        self._heading: list[str] = []

    def take(self, document: Any, heading: str = "") -> bool:
        """Take in a document; False if no device is in it."""
        if isinstance(document, list) and len(document) > 1 and all(map(_has_time, document)):
            taken = [self.take(tick, heading) for tick in document]
            return any(taken)
        if self._source is None:
            self._source = source_of([], heading + " " + _names_of(document), self._other)
        found: list[_Open] = []
        root = _Open()
        time = self._walk(document, [], root, found, None, 0)
        if root.has_figures and (not found or any(f.device for f in root.figures)):
            found.append(root)
        if not found:
            return False
        self._collector.block()
        for position, one in enumerate(found):
            if len(found) > 1 and not one.is_named:
                one.put(NamedFigure(of.INDEX), str(position))
            if time is not None:
                one.put(NamedFigure(of.TIME), time)
            self._emit(one)
        return True

    def _emit(self, one: _Open) -> None:
        columns = NamedColumns(
            self._source or self._other, len(one.figures), tuple(enumerate(one.figures)), str.split
        )
        if self._collector.columns is None:
            self._collector.begin(columns, 1)
        if not self._collector.take(one.cells, columns):
            self._collector.unreadable += 1

    def _walk(
        self, node: Any, path: list[str], device: _Open, found: list[_Open], time: str | None, depth: int
    ) -> str | None:
        """Gather what is below a node for the device around it, or for those in it; return the time there."""
        if depth > _MOST_DEPTH:
            return time
        if isinstance(node, list) and not isinstance(node, PairList):
            for item in node:
                time = self._element(item, path, device, found, time, depth)
            return time
        inner = time
        for key, value in _pairs(node):
            if _NOT_OF_NOW.search(_spelled(key)) or _STATISTIC.fullmatch(key):
                continue
            leaf = _leaf(value)
            if leaf is not None:
                inner = self._take_leaf(path, key, leaf, device) or inner
                continue
            numbered = _DEVICE.fullmatch(key.strip()) or (
                path and _OF_GPUS.fullmatch(path[-1]) and _NUMBER.fullmatch(key)
            )
            if numbered and isinstance(value, (dict, PairList)):
                inner = self._device(value, [*path, key], found, inner, depth, numbered.group(1)) or inner
            else:
                inner = self._walk(value, [*path, key], device, found, inner, depth + 1) or inner
        return inner

    def _element(
        self, item: Any, path: list[str], device: _Open, found: list[_Open], time: str | None, depth: int
    ) -> str | None:
        if not isinstance(item, (dict, PairList)):
            return time
        return self._device(item, path, found, time, depth, None) or time

    def _device(
        self, node: Any, path: list[str], found: list[_Open], time: str | None, depth: int, key: str | None
    ) -> str | None:
        """Gather what is below a node that may be a device of its own."""
        one, before = _Open(), len(found)
        if key is not None:
            one.put(NamedFigure(of.INDEX if key.isdigit() else of.BUS), key)
        inner = self._walk(node, path if key is None else ["gpu"], one, found, None, depth + 1)
        if one.has_figures and len(found) == before:
            if inner is not None:
                one.put(NamedFigure(of.TIME), inner)
            found.append(one)
        return inner or time

    def _take_leaf(self, path: list[str], key: str, leaf: str, device: _Open) -> str | None:
        one = _named(path, key) if key != "mem_util" else None
        if one is None:
            return None
        if one.quantity == of.TIME:
            return leaf
        if one.quantity not in (of.DATE, of.NAME, of.PROCESS):
            device.put(one, leaf)
        return None


def _has_time(node: Any) -> bool:
    """Whether a node has a time of its own: such are ticks, not the devices of one."""
    names = (named(key) for key, value in _pairs(node) if _leaf(value) is not None)
    return any(one is not None and one.quantity == of.TIME for one in names)


class PairList(list[tuple[str, Any]]):
    """A node whose names may come twice."""


def _pairs(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        yield from ((str(k), v) for k, v in node.items())
    elif isinstance(node, PairList):
        yield from node


def _leaf(value: Any) -> str | None:
    """Return a value as a cell; `{"value": 5, "unit": "W"}` is one, a list or another node none."""
    if isinstance(value, dict):
        if value.keys() <= {*_UNITLESS} and "value" in value and not isinstance(value["value"], (dict, list)):
            return f"{_text(value['value'])} {value.get('unit') or ''}".strip()
        return None
    return None if isinstance(value, list) else _text(value)


def _text(value: Any) -> str:
    return "N/A" if value is None or isinstance(value, bool) else str(value)


def _spelled(key: str) -> str:
    return re.sub(r"[_\W]+", " ", key)


def _named(path: Sequence[str], key: str) -> NamedFigure | None:
    """Return what a leaf is of, by its name and the one above it; `Used` alone is of nothing."""
    if len(key) > 100:
        return None
    above = named(f"{_spelled(path[-1])} {key}") if path else None
    if above is not None and above.quantity in (*FIGURES, GRACT):
        return above
    return named(key)


def _names_of(document: Any, depth: int = 0) -> str:
    """Return the first names of a document, by which its monitor is known."""
    if depth > 6:
        return ""
    if isinstance(document, list) and not isinstance(document, PairList):
        return _names_of(document[0], depth + 1) if document else ""
    return " ".join(f"{key} {_names_of(value, depth + 1)}" for key, value in list(_pairs(document))[:60])


def is_training(document: Any) -> bool:
    """Tell whether a document holds what a training logs: a loss, a step."""
    nodes = document if isinstance(document, list) else [document]
    names = {
        word for node in nodes[:3] for key, _ in _pairs(node) for word in re.split(r"[\W_]+", key.lower())
    }
    return bool(names & METRICS)


def json_documents(text: str) -> Iterator[Any]:
    """Yield the JSON values that a text holds one after the other, up to what is none. Raises ValueError
    there."""
    decoder = json.JSONDecoder()
    at, text = 0, _mended(text)
    while True:
        while at < len(text) and text[at] in " \t\r\n,\x00":
            at += 1
        if at >= len(text):
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except RecursionError:
            raise ValueError(at) from None
        yield from _moments(value)


def _mended(text: str) -> str:
    """Put in the commas that nvtop 3.3.0 left out at the ends of lines."""
    return (
        re.sub(r'(?<=["0-9])(\r?\n[ \t]*)(?="\w+": )', r",\1", text) if "device_name" in text[:400] else text
    )


def _rows_of(document: Any) -> list[dict[str, Any]]:
    """Return the rows of columns with a time among them, each a list or numbered, as pandas writes them."""
    columns = document if isinstance(document, dict) and len(document) > 1 else {}
    numbered = {
        str(name): dict(enumerate(column)) if isinstance(column, list) else column
        for name, column in columns.items()
        if isinstance(column, (list, dict))
    }
    first = next(iter(numbered.values()), {})
    if not _has_time(dict.fromkeys(numbered)) or any(
        column.keys() != first.keys() for column in numbered.values()
    ):
        return []
    return [{name: column[at] for name, column in numbered.items()} for at in first]


def _moments(document: Any) -> Iterator[Any]:
    """Yield the moments of columns or of an answer of Prometheus, the figures of each GPU together; any other
    document as it is."""
    rows = _rows_of(document)
    if rows:
        yield rows
        return
    data = document.get("data") if isinstance(document, dict) else None
    series = data.get("result") if isinstance(data, dict) else None
    if not isinstance(series, list):
        yield document
        return
    moments: dict[str, dict[str, Any]] = {}
    for one in series:
        labels = one.get("metric") if isinstance(one, dict) else None
        if not isinstance(labels, dict) or "gpu" not in labels or labels.get("GPU_I_ID"):
            continue
        pairs = one.get("values")
        for pair in pairs if isinstance(pairs, list) else [one.get("value")]:
            time, value = pair if isinstance(pair, list) and len(pair) == 2 else ("", None)
            host, gpu = labels.get("Hostname", ""), str(labels["gpu"])
            figures = moments.setdefault(str(time), {}).setdefault(f"{host}/{gpu}", {"timestamp": time})
            figures |= {"hostname": host, "gpu": gpu, str(labels.get("__name__")): value}
    for gpus in moments.values():
        yield [*gpus.values()]


_EXPORTED = regex(r"(DCGM_FI_\w+)\{([^{}]*)\} ([-+\w.]+)(?: (\d{9,13})$)?")
_LABEL = regex(r"(\w+)=\"([^\"]*)\"")


def exporter_documents(lines: Iterable[str]) -> Iterator[Any]:
    """Yield the scrapes of DCGM's exporter for Prometheus, the figures of each GPU together; MIG instances
    are left out. A figure that comes again begins the next one."""
    gpus: dict[str, dict[str, str]] = {}
    for line in lines:
        found = _EXPORTED.match(line)
        labels = dict(_LABEL.findall(found[2])) if found else {}
        if found is None or "gpu" not in labels or labels.get("GPU_I_ID"):
            continue
        if found[1] in gpus.get(labels["gpu"], ()):
            yield [*gpus.values()]
            gpus = {}
        told = {"uuid": labels.get("UUID"), "timestamp": found[4]}
        named_by = {"gpu": labels["gpu"], **{key: value for key, value in told.items() if value}}
        gpus.setdefault(labels["gpu"], named_by)[found[1]] = found[3]
    if gpus:
        yield [*gpus.values()]


def xml_documents(text: str) -> Iterator[Any]:
    """Yield the XML documents of a text, without their entities: `nvidia-smi -q -x` has none. Raises
    ValueError at what is none."""
    for part in re.split(r"(?=<\?xml\b)", text):
        if not part.strip():
            continue
        if "<!ENTITY" in part:
            raise ValueError("entities")
        try:
            root = ElementTree.fromstring(part.strip())
        except ElementTree.ParseError:
            raise ValueError("xml") from None
        yield PairList([(root.tag, _of_element(root))])


def _of_element(element: ElementTree.Element, depth: int = 0) -> Any:
    if len(element) == 0 or depth > _MOST_DEPTH:
        return (element.text or "").strip()
    children = PairList((child.tag, _of_element(child, depth + 1)) for child in element)
    bus = element.get("id")
    if element.tag == "gpu":
        children.insert(0, ("pci_bus_id", bus or ""))
        return [children]
    return children


_ROCM = regex(r"(GPU|NPU)\[(\d{1,3})\]\s*: +(.{1,120}?): +(.+)")
_PAIR = regex(r"(\s*)([^:|]{1,80}?)\s*:(?:\s+(.*))?")


def indented_documents(lines: Sequence[str]) -> Iterator[Any]:
    """Yield the documents of `name : value` lines, each from its own beginning or time on."""
    document: PairList = PairList()
    stack: list[tuple[int, PairList]] = [(-1, document)]
    for line in lines:
        rocm = _ROCM.fullmatch(line.strip())
        if rocm:
            _put_rocm(document, rocm)
            continue
        if _begins_anew(line, document):
            yield document
            document = PairList()
            stack = [(-1, document)]
        _put_line(line, stack)
    yield document


def _begins_anew(line: str, document: PairList) -> bool:
    text = line.strip()
    begins = text.startswith("====") and any(c.isalpha() for c in text)
    filled = any(value and name != "timestamp" for name, value in document)
    return filled and (begins or moment(text) is not None)


def _put_rocm(document: PairList, found: re.Match[str]) -> None:
    key = f"{found.group(1)}[{found.group(2)}]"
    device = next((v for name, v in document if name == key and isinstance(v, PairList)), None)
    if device is None:
        device = PairList()
        document.append((key, device))
    device.append((found.group(3), found.group(4)))


def _put_line(line: str, stack: list[tuple[int, PairList]]) -> None:
    text = line.rstrip()
    indent = len(text) - len(text.lstrip())
    bus = re.match(r"\s*GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]+$", text)
    found = None if bus else _PAIR.fullmatch(text)
    if moment(text.strip()):
        stack[0][1].append(("timestamp", text.strip()))
        return
    while stack[-1][0] >= indent:
        stack.pop()
    if found and found.group(3):
        key, value = found.group(2), found.group(3)
        numbered = key.strip().lower() in ("gpu", "npu", "npu id", "card") and value.strip().isdigit()
        if not numbered:
            stack[-1][1].append((key.strip(), value.strip()))
            return
        text = f"{' ' * indent}gpu {value.strip()}"
    section = PairList()
    stack[-1][1].append((text.strip().rstrip(":").strip(), section))
    stack.append((indent, section))
