"""What a user asks for with one word in a client: find out why, and the next hypothesis."""

from __future__ import annotations

from mcp_types import GetPromptResult, Prompt, PromptMessage, TextContent

_FIND_OUT_WHY = """\
Find out why this training leaves its device idle. Change nothing.

1. Call `diagnose`. If it asks for a baseline, call `next`, then `wait` while `action` is `running`, until \
one is recorded; then call `diagnose` again.
2. Read the line of code that the first cause names.
3. Answer in one paragraph: the cause, its share of the time, what its fix can gain at most, the line \
of code, and what was not measured. Use only figures of these answers; what they do not know is unknown.

Do not run the training yourself and propose nothing: I decide what is tested."""
_NEXT_HYPOTHESIS = """\
Test one hypothesis of this campaign, up to its verdict.

1. Call `next` and do what its answer says. While `action` is `running`, call `wait`. On `propose` or \
`implement` work from the page in `brief`.
2. Stop when `action` is `stop`, whatever the verdict.
3. Then tell me in one paragraph: the cause, the verdict, the gain with its interval as the answer has it, \
the change, and what is left for me to decide.

Only gpudebug runs the training, measures and judges: write no figure and no verdict of your own."""
_ALL = {
    "find-out-why": ("Find out why", "Why the device is idle; changes nothing.", _FIND_OUT_WHY),
    "next-hypothesis": ("Next hypothesis", "One hypothesis up to its verdict.", _NEXT_HYPOTHESIS),
}


def listed() -> list[Prompt]:
    """Return the prompts, without their texts."""
    return [Prompt(name=name, title=title, description=about) for name, (title, about, _) in _ALL.items()]


def prompt(name: str) -> GetPromptResult | None:
    """One prompt as the user's message; None if no prompt has this name."""
    if name not in _ALL:
        return None
    _, about, text = _ALL[name]
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=about, messages=[message])
