"""The tools: name, arguments, and the engine's function that answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gpudebug.core.answers.answer import Answer
from gpudebug.core.errors import UsageError
from gpudebug.mcp.arguments import (
    Arguments,
    BaselineArguments,
    CatalogueArguments,
    CompareArguments,
    CompareCommandsArguments,
    DiagnoseArguments,
    HypothesisArguments,
    NextArguments,
    NoArguments,
    ProposeArguments,
    SampleArguments,
    VerifyArguments,
    WaitArguments,
    WhyCommandArguments,
    WhyRunArguments,
)

if TYPE_CHECKING:
    from gpudebug.engine.run.live_line import Report

_NAME_SHOWN = 60
_PROBLEMS = {"missing": "is missing", "string_pattern_mismatch": "has characters that are not allowed"}


@dataclass(frozen=True)
class Client:
    """The folder and the session that tools work for, fixed when the server starts.

    `allow_commands`: the server's user lets its client run commands of its own; `allow_decisions`: and decide
    what a person decides."""

    folder: Path
    session: str
    allow_commands: bool = False
    allow_decisions: bool = False


@dataclass(frozen=True)
class Tool:
    """`call` gets the checked arguments and returns the answer of the command of the same name."""

    name: str
    description: str
    arguments: type[Arguments]
    call: Callable[[Client, Any, Report], Answer]
    read_only: bool = False
    idempotent: bool = False

    def schema(self) -> dict[str, object]:
        """Return the JSON schema of its arguments."""
        made = self.arguments.model_json_schema()
        made.pop("title", None)
        made.pop("description", None)
        for about in made.get("properties", {}).values():
            about.pop("title", None)
            if about.get("default", ...) is None:
                del about["default"]
        return {"properties": {}, **made}

    def checked(self, given: dict[str, object]) -> Arguments:
        """Parse the arguments; UsageError naming the first wrong one, without its value."""
        try:
            return self.arguments.model_validate(given)
        except ValidationError as e:
            wrong = e.errors(include_url=False, include_input=False, include_context=False)[0]
            # After the argument's name keep positions in a list; the rest describes its type.
            places = [str(part) for part in wrong["loc"][1:] if isinstance(part, int)]
            name = ".".join([str(wrong["loc"][0]), *places])
            if len(name) > _NAME_SHOWN:
                name = f"{name[:_NAME_SHOWN]}…"
            names = ", ".join(self.arguments.model_fields) or "none"
            if wrong["type"] == "extra_forbidden":
                raise UsageError(
                    f"{self.name} has no argument {name!r}", next=f"its arguments are: {names}"
                ) from None
            problem = _PROBLEMS.get(wrong["type"], wrong["msg"])
            raise UsageError(f"{self.name}: {name}: {problem}", next=f"its arguments are: {names}") from None


def _status(place: Client, _: NoArguments, __: Report) -> Answer:
    from gpudebug.engine.status.status import status

    return status(place.folder)


def _show(place: Client, asked: HypothesisArguments, _: Report) -> Answer:
    from gpudebug.engine.status.answer import show

    return show(place.folder, asked.hypothesis)


def _next(place: Client, asked: NextArguments, report: Report) -> Answer:
    from gpudebug.engine.cycle.begin import next_here

    if asked.whole:
        from gpudebug.engine.brief.shown import forget

        forget(place.folder, place.session)
    return next_here(place.folder, report, place.session, detach=asked.detach)


def _wait(place: Client, asked: WaitArguments, report: Report) -> Answer:
    from gpudebug.engine.cycle.detached import wait

    return wait(place.folder, report, place.session, asked.seconds)


def _propose(place: Client, asked: ProposeArguments, _: Report) -> Answer:
    from gpudebug.core.change.intervention import from_options
    from gpudebug.engine.hypotheses.propose import propose, propose_sweep

    given = {**asked.model_dump(include={"title", "description", "method"}), "session": place.session}
    options = (asked.set, asked.unset, asked.env, asked.patch or None, asked.code)
    if asked.none:
        from gpudebug.engine.cycle.nothing import propose_nothing

        if any(given for name, given in asked.model_dump().items() if name != "none"):
            raise UsageError("none proposes nothing", next="leave the other arguments out")
        return propose_nothing(place.folder, asked.none, place.session)
    if asked.sweep:
        if any(options) or asked.compound:
            raise UsageError("sweep is the change itself", next="leave the other change out")
        if asked.cause or asked.from_catalogue:
            raise UsageError("sweep takes no cause", next="propose each value with `cause`")
        return propose_sweep(place.folder, asked.sweep, **given, strict=True)
    given["change"] = from_options(*options, asked.compound) if any(options) else None
    if asked.from_catalogue:
        from gpudebug.engine.diagnosis.from_catalogue import propose_from_catalogue

        if asked.cause:
            raise UsageError("from_catalogue names the cause already", next="leave cause out")
        return propose_from_catalogue(place.folder, asked.from_catalogue, **given)
    return propose(place.folder, **given, cause=asked.cause or None, strict=True)


def _diagnose(place: Client, asked: DiagnoseArguments, _: Report) -> Answer:
    from gpudebug.engine.diagnosis.diagnose import diagnose

    return diagnose(place.folder, asked.run)


def _catalogue(place: Client, asked: CatalogueArguments, _: Report) -> Answer:
    from gpudebug.engine.diagnosis import catalogue_view

    found = asked.about.strip()
    return catalogue_view.asked(place.folder, found) if found else catalogue_view.overview(place.folder)


def _why_workload(place: Client, asked: WhyRunArguments, report: Report) -> Answer:
    if asked.pid is not None and asked.gpu is not None:
        raise UsageError("pid and gpu exclude each other", next="keep one of them")
    if asked.pid is not None or asked.gpu is not None:
        from gpudebug.engine.diagnosis.attach import attach

        return attach(
            place.folder, report, pid=asked.pid, gpu=asked.gpu, most=asked.seconds, session=place.session
        )
    from gpudebug.engine.diagnosis.why import why

    return why(place.folder, (), report, most=asked.seconds)


def _why(place: Client, asked: WhyCommandArguments, report: Report) -> Answer:
    from gpudebug.engine.diagnosis.why import why

    return why(place.folder, asked.command, report, most=asked.seconds)


def _verify(place: Client, asked: VerifyArguments, report: Report) -> Answer:
    from gpudebug.engine.run.live_line import Live
    from gpudebug.engine.status.summary import check_summary
    from gpudebug.engine.verify import verify

    def doing(text: str) -> None:
        report(Live(text, 0.0, None, None, None, None, None, remark=text))

    return verify(place.folder, asked.hypothesis, doing, check_summary)


def _compare(place: Client, asked: CompareArguments, _: Report) -> Answer:
    from gpudebug.engine.tools.compare import compare_recorded

    return compare_recorded(place.folder, asked.a, asked.b)


def _sample_workload(place: Client, _: NoArguments, report: Report) -> Answer:
    from gpudebug.engine.run.sample import sample

    return sample(place.folder, (), report)


def _sample(place: Client, asked: SampleArguments, report: Report) -> Answer:
    from gpudebug.engine.run.sample import sample

    return sample(place.folder, asked.command, report)


def _compare_commands(place: Client, asked: CompareCommandsArguments, report: Report) -> Answer:
    from gpudebug.engine.tools.compare import ComparedHow, compare

    return compare(place.folder, asked.a, asked.b, report, ComparedHow(), commands_allowed=True)


def _accept(place: Client, asked: HypothesisArguments, _: Report) -> Answer:
    from gpudebug.engine.hypotheses.accept import accept

    return accept(place.folder, asked.hypothesis, place.session)


def _release(place: Client, asked: HypothesisArguments, _: Report) -> Answer:
    from gpudebug.engine.agents.release import release

    return release(place.folder, asked.hypothesis, place.session)


def _reopen(place: Client, asked: HypothesisArguments, _: Report) -> Answer:
    from gpudebug.engine.hypotheses.reopen import reopen

    return reopen(place.folder, asked.hypothesis, place.session)


def _export(place: Client, _: NoArguments, __: Report) -> Answer:
    from gpudebug.engine.hypotheses.export import export

    return export(place.folder, session=place.session)


def _baseline(place: Client, asked: BaselineArguments, report: Report) -> Answer:
    from gpudebug.engine.cycle.begin import baseline_here

    return baseline_here(place.folder, asked.role, report, place.session)


TOOLS = (
    Tool(
        "status",
        "The campaign now: baselines, hypotheses with their results, and what `next` would do.",
        NoArguments,
        _status,
        read_only=True,
    ),
    Tool(
        "next",
        "Do the one next thing, exactly once: recover, record a baseline, test a hypothesis, or ask for one. "
        "If `action` is propose or implement it is your turn, and `brief` says what to do; if it is "
        "stop, do not call `next` again; if it is running, call `wait`. Only these runs measure: never run "
        "the training yourself.",
        NextArguments,
        _next,
    ),
    Tool(
        "wait",
        "Wait for the run that `next` started, then return its result; if `action` is running, the run goes "
        "on: call `wait` again. Cancelling the call ends the wait, not the run.",
        WaitArguments,
        _wait,
    ),
    Tool(
        "propose",
        "Add an UNTESTED hypothesis: one cause, and the one change that tests it. A change that was already "
        "proposed is refused. `next` tests it.",
        ProposeArguments,
        _propose,
    ),
    Tool(
        "diagnose",
        "The root causes by probability, the evidence for and against each, what its fix can gain, and "
        "the hypothesis that would test it; what was not measured is listed, not guessed.",
        DiagnoseArguments,
        _diagnose,
        read_only=True,
    ),
    Tool(
        "catalogue",
        "The root causes that gpudebug knows, those that plain words fit, or one in full with its fix.",
        CatalogueArguments,
        _catalogue,
        read_only=True,
    ),
    Tool(
        "show",
        "One hypothesis with its figures, gates and files.",
        HypothesisArguments,
        _show,
        read_only=True,
    ),
    Tool(
        "release",
        "Release your claim on a hypothesis that you cannot implement; a change that was begun is kept.",
        HypothesisArguments,
        _release,
    ),
    Tool(
        "reopen",
        "Test a hypothesis again if its premises changed; its earlier result is kept.",
        HypothesisArguments,
        _reopen,
    ),
    Tool(
        "verify",
        "Derive every number and verdict again from the run folders; `problems` lists what differs.",
        VerifyArguments,
        _verify,
        read_only=True,
    ),
    Tool(
        "compare",
        "Whether recorded run B is faster than A. Runs nothing.",
        CompareArguments,
        _compare,
        read_only=True,
    ),
    Tool(
        "sample",
        "Run the campaign's workload once, as it is, under the sampler; it is not evidence for a hypothesis.",
        NoArguments,
        _sample_workload,
    ),
    Tool(
        "why",
        "Run the campaign's workload for 15 to 90 s and say at once why it is slow: devices, where a step "
        "goes, causes; it is not evidence for a hypothesis.",
        WhyRunArguments,
        _why_workload,
    ),
)
OF_DECISIONS = (
    Tool(
        "accept",
        "Make the change of a VALIDATED hypothesis part of the baseline; later trials are measured with it.",
        HypothesisArguments,
        _accept,
        idempotent=True,
    ),
    Tool(
        "export",
        "Write the accepted changes to runs/export as patches for git apply, with what they gain together.",
        NoArguments,
        _export,
        idempotent=True,
    ),
    Tool(
        "baseline",
        "Record a baseline of the unmodified workload, or of the reference, now. `next` records it by "
        "itself if it is needed.",
        BaselineArguments,
        _baseline,
    ),
)
"""What a person decides: offered only by `gpudebug mcp --allow-decisions`."""
OF_COMMANDS = (
    Tool(
        "why_command",
        "Run any training command for 15 to 90 s and say at once why it is slow.",
        WhyCommandArguments,
        _why,
    ),
    Tool(
        "sample_command",
        "Run any command once under the sampler.",
        SampleArguments,
        _sample,
    ),
    Tool(
        "compare_commands",
        "Whether B is faster than A: two commands, run in turn, or two recorded runs.",
        CompareCommandsArguments,
        _compare_commands,
    ),
)
"""Offered only by `gpudebug mcp --allow-commands`."""


def tools_of(place: Client) -> tuple[Tool, ...]:
    """Return what a client may call."""
    decisions = OF_DECISIONS if place.allow_decisions else ()
    return (*TOOLS, *decisions, *(OF_COMMANDS if place.allow_commands else ()))


def flag_of(name: str) -> str | None:
    """Return the flag of `gpudebug mcp` that offers this tool; None if no flag does."""
    if any(tool.name == name for tool in OF_DECISIONS):
        return "--allow-decisions"
    return "--allow-commands" if any(tool.name == name for tool in OF_COMMANDS) else None
