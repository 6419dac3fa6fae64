"""Where the threads of a run were, by samples of their call stacks."""

from gpudebug.core.inside.stacks.lines import StacksRecord, read_stacks
from gpudebug.core.inside.stacks.window import stacks_evidence, stacks_of, watched_span

__all__ = ["StacksRecord", "read_stacks", "stacks_evidence", "stacks_of", "watched_span"]
