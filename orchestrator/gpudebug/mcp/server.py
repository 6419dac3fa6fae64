"""The protocol: a thread talks to the client while the main thread does the work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Tool as Described

from gpudebug import __version__
from gpudebug.core.answers.answer import Answer
from gpudebug.core.errors import UsageError
from gpudebug.engine.campaign.session import VARIABLE, served_session
from gpudebug.engine.run.environment import ask_anew
from gpudebug.mcp import resources
from gpudebug.mcp.compact import as_text, compact
from gpudebug.mcp.tools import Client, Tool, flag_of, tools_of
from gpudebug.mcp.unreadable import ARGUMENT, AnsweredStream
from gpudebug.mcp.worker import JobResult, Worker, WorkerJob
from gpudebug.terminal import live, output

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from gpudebug.engine.run.live_line import Live

PROGRESS_S = 1.0
"""The least time between two progress messages."""

INSTRUCTIONS = """\
gpudebug finds why a GPU sits idle in training: it tests one hypothesis at a time, and only it measures. \
Call `next` and do what its answer says: `brief` is the page to work from. You have one hypothesis: after \
its verdict `next` answers `stop`, and you are done. Never write a result into the progress file. Texts name \
commands: `gpudebug show 3` is the tool `show` with `hypothesis` 3, an option is the argument of its name. \
What is no tool or argument here is the user's to run: tell the user. Exit status 4 or 7 is `action` `stop`, \
5 is `propose` or `implement`, 6 is the code `busy`. Keys that are null or empty are left out of answers."""


def serve(
    folder: Path,
    env: MutableMapping[str, str],
    *,
    allow_commands: bool = False,
    allow_decisions: bool = False,
) -> None:
    """Serve one client over standard input and output until it closes our input, or a signal ends us."""
    place = Client(folder, served_session(env), allow_commands, allow_decisions)
    # Everything that this process starts belongs to the session.
    env[VARIABLE] = place.session
    worker = Worker()
    with ThreadPoolExecutor(1, "mcp") as pool:
        talk = pool.submit(_talk, worker, place)
        try:
            worker.run()
        except KeyboardInterrupt:
            # A thread of the SDK waits for the client's next line: a normal exit would wait for it.
            os._exit(output.INTERRUPTED)
    failure = talk.exception()
    if failure is not None and not _left(failure):
        raise failure


def _talk(worker: Worker, place: Client) -> None:
    try:
        asyncio.run(_serve(worker, place))
    finally:
        worker.close()


def _left(failure: BaseException) -> bool:
    """Tell whether the client closed our output before our input, and nothing else went wrong."""
    parts = getattr(failure, "exceptions", None)
    return all(_left(part) for part in parts) if parts else isinstance(failure, BrokenPipeError)


async def _serve(worker: Worker, place: Client) -> None:
    offered = tools_of(place)
    tools = {tool.name: tool for tool in offered}

    async def listed(_: ServerRequestContext, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_described(tool) for tool in offered])

    async def called(ctx: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is not None:
            return _result(await _answer(ctx, worker, tool, place, params.arguments or {}))
        flag = flag_of(params.name)
        if flag is None:
            raise MCPError(INVALID_PARAMS, f"unknown tool {params.name[:60]!r}")
        return _result(_withheld(params.name, flag))

    async def read(_: ServerRequestContext, params: ReadResourceRequestParams) -> ReadResourceResult:
        try:
            reading = resources.reader_of(str(params.uri), place.folder)
        except UsageError as e:
            raise MCPError(INVALID_PARAMS, output.plain_line(str(e))) from None
        result = await _settled(worker, reading)
        if not isinstance(result.document, resources.ResourceAnswer):
            raise MCPError(INVALID_PARAMS, _message(result.document))
        found = result.document
        text = _sendable(output.plain(found.text))
        contents = TextResourceContents(uri=params.uri, mime_type=found.mime_type, text=text)
        return ReadResourceResult(contents=[contents])

    async def at_hand(_: ServerRequestContext, __: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=resources.listed(place.folder))

    async def templates(
        _: ServerRequestContext, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=list(resources.TEMPLATES))

    async def asked(_: ServerRequestContext, __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=resources.prompts())

    async def prompted(_: ServerRequestContext, params: GetPromptRequestParams) -> GetPromptResult:
        found = resources.prompt(params.name)
        if found is None:
            raise MCPError(INVALID_PARAMS, f"unknown prompt {params.name[:60]!r}")
        return found

    server = Server(
        "gpudebug",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
        on_list_resources=at_hand,
        on_list_resource_templates=templates,
        on_read_resource=read,
        on_list_prompts=asked,
        on_get_prompt=prompted,
    )
    # While it serves, standard output is the protocol's alone: what else is printed goes to standard error.
    async with stdio_server() as (reading, writing):
        await server.run(AnsweredStream(reading, writing), writing, server.create_initialization_options())


def _described(tool: Tool) -> Described:
    return Described(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema(),
        annotations=ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=False,
            idempotent_hint=tool.read_only or tool.idempotent,
            open_world_hint=False,
        ),
    )


def _withheld(name: str, flag: str) -> JobResult:
    what = "is a person's decision" if flag == "--allow-decisions" else "runs commands of the client"
    refusal = UsageError(
        f"{name} {what}, and this server does not offer it",
        next=f"tell the user, who may run it, or start the server with {flag}",
    )
    return JobResult(output.error_document(refusal), failed=True)


async def _answer(
    ctx: ServerRequestContext, worker: Worker, tool: Tool, place: Client, given: dict[str, object]
) -> JobResult:
    """Run a tool, report its progress to the client, and return its result; cancelling ends the run."""
    try:
        if ARGUMENT in given:
            raise UsageError(f"{tool.name}: {given[ARGUMENT]}", next="send plain text")
        arguments = tool.checked(given)
    except UsageError as e:
        return JobResult(output.error_document(e), failed=True)
    messages: asyncio.Queue[str | JobResult] = asyncio.Queue()
    outbox = _Outbox(asyncio.get_running_loop(), messages)

    def work() -> Answer:
        ask_anew()
        return tool.call(place, arguments, outbox.report)

    job = WorkerJob(work, outbox.put)
    began = time.monotonic()
    worker.submit(job)
    try:
        while not isinstance(message := await messages.get(), JobResult):
            await ctx.session.report_progress(time.monotonic() - began, None, message)
    except BaseException:
        worker.cancel(job)
        raise
    return message


async def _settled(worker: Worker, work: Callable[[], Answer]) -> JobResult:
    """Do work that reports no progress, in its turn."""
    results: asyncio.Queue[str | JobResult] = asyncio.Queue()
    job = WorkerJob(work, _Outbox(asyncio.get_running_loop(), results).put)
    worker.submit(job)
    try:
        result = await results.get()
    except BaseException:
        worker.cancel(job)
        raise
    assert isinstance(result, JobResult)
    return result


class _Outbox:
    """Hands messages from the worker's thread to the thread that talks to the client."""

    def __init__(self, loop: asyncio.AbstractEventLoop, messages: asyncio.Queue[str | JobResult]) -> None:
        self._loop = loop
        self._messages = messages
        self._last = -PROGRESS_S

    def put(self, message: str | JobResult) -> None:
        # The client may be gone, and the loop with it.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._messages.put_nowait, message)

    def report(self, now: Live) -> None:
        if now.remark is not None:
            self.put(output.plain_line(now.remark))
        elif time.monotonic() - self._last >= PROGRESS_S:
            self._last = time.monotonic()
            self.put(live.line(now))


def _result(answer: JobResult) -> CallToolResult:
    """Return the answer once, as text: what every client shows its model."""
    document = output.document_of(answer.document, None)
    text = as_text(compact(_sendable(document)) if not answer.failed else _sendable(document))
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=answer.failed)


def _message(document: Answer | dict[str, Any]) -> str:
    """Return an error as one line."""
    error = document["error"] if isinstance(document, dict) else {}
    where = f"{error['file']}: " if error.get("file") else ""
    return where + "; next: ".join(str(error[key]) for key in ("message", "next") if error.get(key))


def _sendable(value: Any) -> Any:
    """Escape what is not text, as in names of files: the protocol is UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {k: _sendable(v) for k, v in value.items()}
    return [_sendable(v) for v in value] if isinstance(value, (list, tuple)) else value
