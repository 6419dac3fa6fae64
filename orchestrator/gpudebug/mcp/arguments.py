"""The arguments of each tool."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema


class Arguments(BaseModel):
    """A tool's arguments: no others, strictly typed, of limited length."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NoArguments(Arguments):
    pass


Number = Annotated[int, Field(ge=1, le=999, description="Number of the hypothesis.")]
Word = Annotated[str, Field(max_length=1000)]
Words = Annotated[list[Word], Field(max_length=50)]
Side = Annotated[
    str,
    Field(
        max_length=200,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="A run of runs/ by its name, baseline, reference, or a hypothesis's number.",
    ),
]
Run = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class HypothesisArguments(Arguments):
    hypothesis: Number


class VerifyArguments(Arguments):
    hypothesis: Number | SkipJsonSchema[None] = None


class NextArguments(Arguments):
    detach: bool = Field(
        True,
        description="Start the run in the background and return at once; `wait` waits for it. If false, "
        "the call lasts as long as the runs, minutes to hours, and ends them if it is cancelled.",
    )
    whole: bool = Field(False, description="Repeat in `brief` what your last one had already.")


class WaitArguments(Arguments):
    seconds: int = Field(50, ge=1, le=3600, description="Wait this long at most.")


Cause = Annotated[str, Field(max_length=100, pattern=r"^[a-z0-9-]*$")]


class ProposeArguments(Arguments):
    title: str = Field("", max_length=200, description="The cause, in one line; not needed for a sweep.")
    description: str = Field("", max_length=2000, description="Why it would idle the device.")
    method: str = Field("", max_length=2000, description="What to change and what should move.")
    set: Words = Field([], description="Flags to set in the training command, each FLAG=VALUE.")
    unset: Words = Field([], description="Flags to remove from the training command.")
    env: Words = Field([], description="Environment variables to set, each NAME=VALUE.")
    sweep: str = Field("", max_length=1000, description="One hypothesis a value: FLAG=V,V or env:NAME=V,V.")
    patch: str = Field("", max_length=300, description="A patch, hypotheses/patches/FILE.")
    code: bool = Field(False, description="The change is code, written when `next` asks for it.")
    compound: bool = Field(False, description="Allow several changes at once.")
    cause: Cause = Field("", description="The root cause that it tests, by its id in the catalogue.")
    from_catalogue: Cause = Field(
        "", description="Take what is not given from the catalogue's entry for this root cause."
    )
    none: str = Field(
        "", max_length=2000, description="Nothing is left to propose, and why: ends the session."
    )


class CatalogueArguments(Arguments):
    about: str = Field(
        "",
        max_length=200,
        description="The id of a root cause, or words for what you see; default: all.",
    )


class DiagnoseArguments(Arguments):
    run: Run | SkipJsonSchema[None] = Field(None, description="The run to diagnose; by default the baseline.")


class CompareArguments(Arguments):
    a: Side
    b: Side


Command = Annotated[list[Word], Field(min_length=1, max_length=200)]


class SampleArguments(Arguments):
    command: Command = Field(description="The command and its arguments, one word each; not run in a shell.")


class WhyArguments(Arguments):
    seconds: int | SkipJsonSchema[None] = Field(
        None, ge=1, le=3600, description="End the run after so many seconds; by default after 15 to 90."
    )


class WhyRunArguments(WhyArguments):
    pid: int | SkipJsonSchema[None] = Field(
        None,
        ge=1,
        description="Look at a run of the campaign that runs already, by one of its processes.",
    )
    gpu: int | SkipJsonSchema[None] = Field(
        None,
        ge=0,
        description="Look at the run of the campaign on this GPU of nvidia-smi; instead of `pid`.",
    )


class WhyCommandArguments(WhyArguments):
    command: Command = Field(description="The command and its arguments, one word each; not run in a shell.")


class CompareCommandsArguments(Arguments):
    a: Word = Field(description="A recorded run as for `compare`, or a command in one text.")
    b: Word


class BaselineArguments(Arguments):
    role: Literal["workload", "reference"] | SkipJsonSchema[None] = Field(
        None, description="Which baseline; by default all that are needed."
    )
