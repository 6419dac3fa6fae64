"""The answer of `gpudebug report` as text for people."""

from __future__ import annotations

from gpudebug.core.answers.report import ReportAnswer

_NAMED = 10


def report(answer: ReportAnswer) -> str:
    """Return the Markdown if that was asked for; else list what was written and left out."""
    if answer.markdown is not None:
        return answer.markdown.rstrip("\n")
    lines = []
    if answer.page is not None and answer.bytes is not None:
        size = f"{answer.bytes / 1e6:.1f} MB"
        lines.append(f"wrote {answer.page} ({size}, {_count(answer.runs, 'run')}): open it in a browser")
    skipped = answer.skipped
    lines += [f"skipped run {s.run}: {s.why}" for s in skipped[:_NAMED]]
    if len(skipped) > _NAMED:
        lines.append(f"skipped {_count(len(skipped) - _NAMED, 'more run')}, which the page names")
    lines += [f"note: {note}" for note in answer.notes]
    if answer.next_command:
        lines.append(f"Next: {answer.next_command}")
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
