"""Binary files by the name of their format: none of them is a log."""

from __future__ import annotations

import re

from gpudebug.core.lazy import regex

SQLITE = b"SQLite format 3\0"
WANDB = b":W&B"
SWANLAB = b":SWL"
EVENTS = "a TensorBoard event file"
GZIP = b"\x1f\x8b"
UNKNOWN = "a binary file of an unknown format"

# What a file begins with; of two that hold the longer comes first.
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (SQLITE, "an SQLite database"),
    (WANDB, "a W&B run file"),
    (SWANLAB, "a SwanLab run file"),
    (b"NVR\0", "an Nsight Compute report (.ncu-rep)"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\xfe\xed\xfa", "a Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"MZ\x90", "a Windows program"),
    (b"\0asm", "a WebAssembly module"),
    (b"PAR1", "a Parquet table"),
    (b"ARROW1", "an Arrow table"),
    (b"FEA1", "a Feather table"),
    (b"Obj\x01", "an Avro file"),
    (b"ORC", "an ORC table"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"GGUF", "GGUF model weights"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\x04\x22\x4d\x18", "an lz4 archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (GZIP, "a gzip archive"),
    (b"\x89PNG\r\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)
# A log may begin so too: `ORCHESTRATOR`, `BZhang`.
_WORDS = frozenset(magic for magic, _ in _MAGIC if magic.isalnum() and magic.isascii())
_FIRST = 64
_PICKLE = regex(rb"\x80[\x02-\x05]")
_ZIP = b"PK\x03\x04"
_TAR_AT, _TAR = 257, b"ustar"
# Eight bytes of length, then the header as JSON.
_SAFETENSORS = regex(rb".{6}\0\0\{\s*\"", re.DOTALL)
_TFRECORD = regex(rb".{2,4}\0{4,6}.{4,20}brain\.Event", re.DOTALL)
# Reports that begin with nothing that is published: their names tell, if their content is binary.
_ENDINGS = {
    ".nsys-rep": "an Nsight Systems report (.nsys-rep)",
    ".qdrep": "an Nsight Systems report (.qdrep)",
    ".qdstrm": "an Nsight Systems stream (.qdstrm)",
    ".ncu-rep": "an Nsight Compute report (.ncu-rep)",
    ".pt": "a PyTorch checkpoint",
    ".pth": "a PyTorch checkpoint",
    ".ckpt": "a checkpoint",
    ".pkl": "a Python pickle",
    ".npy": "a NumPy array",
    ".bin": "a binary file",
}
# Control characters that logs hold: tab, line ends, bells, backspaces of progress bars, colours.
_ODD = bytes(c for c in range(0x20) if c not in b"\a\b\t\n\v\f\r\x1b")
# More of them than this share, beside the NUL bytes of a sparse log, is no text; in random bytes a tenth is.
_ODD_SHARE = 0.02
_NEXT = {
    "Nsight Systems": "export it: nsys export --type sqlite F.nsys-rep, then gpudebug analyze F.sqlite",
    "Nsight Compute": "gpudebug reads no kernel reports: give a trace, or an nsys export",
    "UTF-16": "convert it: iconv -f UTF-16 -t UTF-8 FILE",
    "archive": "unpack it and give the file inside",
}


def binary_format(head: bytes, name: str = "") -> str | None:
    """Return what a file that begins with `head` is, with its article; None for text.

    `name` is the file's: of formats that publish no magic bytes its ending tells. A log with NUL bytes (a
    file that was truncated while it was written), with colours or in another encoding is text.
    """
    for magic, kind in _MAGIC:
        if head.startswith(magic) and not (magic in _WORDS and _goes_on_as_text(head)):
            return kind
    if head.startswith(_ZIP):
        return _zip(head)
    if _PICKLE.match(head):
        return "a Python pickle or an old PyTorch checkpoint"
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        return "a tar archive"
    if _SAFETENSORS.match(head):
        return "safetensors model weights"
    if _TFRECORD.match(head):
        return EVENTS
    if is_text(head):
        return None
    ending = next((e for e in _ENDINGS if name.lower().endswith(e)), None)
    return _ENDINGS[ending] if ending else UNKNOWN


def encoding_of(head: bytes) -> str | None:
    """Return the encoding of text that a byte order mark names, or NUL bytes at every other place; None for
    UTF-8, and for what is no text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    first = head[:64]
    if len(first) > 15 and first[1::2].count(0) == len(first) // 2 and not first[::2].count(0):
        return "utf-16-le"
    return None


def text_of(head: bytes) -> str:
    return head.decode(encoding_of(head) or "utf-8", "replace")


def _goes_on_as_text(head: bytes) -> bool:
    """Tell whether a log begins so: formats hold lengths, versions or NUL bytes near their beginning."""
    first = head[:_FIRST]
    return first == first.translate(None, _ODD) and is_text(head)


def next_step(kind: str, known: str) -> str:
    """Return what to do with a file of this format; `known` lists what could be given instead."""
    return next((text for word, text in _NEXT.items() if word in kind), f"give {known}")


def is_text(head: bytes) -> bool:
    """Tell whether bytes are text, in whatever encoding; NUL bytes are left out."""
    text = head.replace(b"\0", b"")
    if not text:
        return True
    odd = len(text) - len(text.translate(None, _ODD))
    return odd <= _ODD_SHARE * len(text)


def _zip(head: bytes) -> str:
    names = head[:4096]
    if b"data.pkl" in names or b"/byteorder" in names:
        return "a PyTorch checkpoint (zip)"
    return "NumPy arrays (.npz)" if b".npy" in names else "a zip archive"
