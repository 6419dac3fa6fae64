"""Where the threads of a run were, by samples of their call stacks."""

from gpudebug.core.inside.stacks.merging import stacks_evidence
from gpudebug.core.inside.stacks.reading import StacksRecord, read_stacks

__all__ = ["StacksRecord", "read_stacks", "stacks_evidence"]
