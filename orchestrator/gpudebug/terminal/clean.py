"""The answer of `gpudebug clean` as text for people."""

from __future__ import annotations

from gpudebug.core.answers.setup import CleanAnswer

_LISTED = 20


def clean(answer: CleanAnswer) -> str:
    """A line for each thing found, or what was removed and what was kept."""
    if answer.action == "cleaned":
        lines = [f"removed {path}" for path in answer.removed]
        lines += [f"kept {one.path}: {one.why}" for one in answer.kept]
        return "\n".join(lines) or "nothing removed"
    left = answer.left
    lines = [f"{_size(one.bytes)}  {one.kind}  {one.path}" for one in left[:_LISTED]]
    if len(left) > _LISTED:
        lines.append(f"and {len(left) - _LISTED} more; --json lists all")
    lines.append(f"{_size(answer.bytes)}  in all" if left else "gpudebug left nothing here")
    if left:
        lines.append("Remove with --unused-runs, --temporaries, --worktrees, or --runs (evidence too).")
    return "\n".join(lines)


def _size(count: int) -> str:
    return f"{count / (1 << 20):9.1f} MB"
