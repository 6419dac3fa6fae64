"""What usually helps, by the words in a section's name."""

from __future__ import annotations

import re

# The first match counts: the more particular come first. `<` is the beginning of a word.
_HINTS = (
    (
        r"gpu.?(to|2|->).?cpu|d2h|device.?to.?host|to_?cpu|download|<cpu$",
        "copy from the GPU less often, all at once, into pinned buffers that are allocated once",
    ),
    (
        r"cpu.?(to|2|->).?gpu|h2d|host.?to.?device|to_?(gpu|cuda|device)|upload|transfer",
        "copy from pinned memory with non_blocking=True, in one piece, while the GPU computes",
    ),
    (
        r"seriali[sz]|pickle|json|protobuf",
        "serialise less often or in another process, or share memory instead",
    ),
    (r"checkpoint|save|dump|snapshot", "save less often, or in the background from a copy on the host"),
    (r"<eval|<valid", "evaluate less often, or on less data"),
    (
        r"<log(?!it)|<print|tensorboard|wandb|metric",
        "log less often, and read no tensor back for it at each step",
    ),
    (
        r"queue|merg(e|ing)",
        "review how the queue is kept: a ring buffer with slots allocated once needs no copies",
    ),
    (r"replay|store|buffer", "write into arrays allocated once, and whole batches at a time"),
    (
        r"data(?!.?collect)|load|fetch|batch|collate|dataset",
        "give the loader more workers, keep them (persistent_workers), pin memory and prefetch",
    ),
    (
        r"image|rgb|resiz|render|draw|preprocess|augment|decode|frame|transform|normali[sz]",
        "use smaller or fewer images, prepare them once or in the loader's workers, or on the GPU",
    ),
    (
        r"robot|camera|sensor|observation|send_action|serial_port|communicat",
        "lower the resolution or the rate, raise the baud rate, or read in a thread of its own",
    ),
    (r"postprocess", "do it for whole batches, on the GPU, before anything is copied to the host"),
    (r"alloc|copy|clone|stack|concat|reshape", "allocate buffers once, reuse tensors, avoid copies"),
    (
        r"<env|simulator|rollout|collect",
        "run fewer environments, or step them in processes of their own and in batches",
    ),
    (r"guidance", "lower its weight, simplify it, or compile it (torch.compile)"),
    (r"teacher", "leave the teacher out if its output is not used"),
    (
        r"forward|inference|model|policy|conv|lstm|attention|encoder|layer|student",
        "try mixed precision, torch.compile and a larger batch",
    ),
    (r"backward|optim|update", "try mixed precision, a fused optimizer and fewer, larger steps"),
)
_COMPILED = tuple((re.compile(words.replace("<", "(?<![a-z])")), advice) for words, advice in _HINTS)
_LONGEST = 200


def hint(name: str) -> str | None:
    """Advice for a section of this name; None if the name says nothing."""
    text = name[:_LONGEST].lower()
    return next((advice for words, advice in _COMPILED if words.search(text)), None)
