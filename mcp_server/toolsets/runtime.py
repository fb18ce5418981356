"""The toolset `runtime`: S0's calls (templates, runs, events, artifacts, the profile), and one to
read of a result only what is needed.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from artifacts.api.contract import ARTIFACT_CHUNK, GET_ARTIFACT_INPUT
from artifacts.chunks import read_chunk
from decisions.infra.threads import in_thread
from mcp_server.tools.registry import McpTool, McpToolCall
from runs.api import contract
from runs.queries import page_reader, runs
from runs.streaming import long_poll
from runs.streaming.long_poll import WAIT_MAX_MS
from runs.submission import services
from runs.submission.answer import answer_run

TEMPLATE_FILTER = {"templateId": "template_id"}
SUBSCRIBE_DEFAULTS = {"after": 0, "limit": 100}


async def list_task_templates(call: McpToolCall) -> dict[str, Any]:
    """Return every template."""
    return await in_thread(runs.list_task_templates, principal=call.principal)


async def run_task_template(call: McpToolCall) -> dict[str, Any]:
    """Submit a run and answer as its mode wants."""
    return await long_poll.submit_and_wait(
        principal=call.principal, call=call.arguments, progress=call.progress
    )


async def get_task_run(call: McpToolCall) -> dict[str, Any]:
    """Return a run as it is."""
    return await in_thread(runs.get_run, principal=call.principal, run_id=call.arguments["runId"])


async def list_task_runs(call: McpToolCall) -> dict[str, Any]:
    """Return a page of the workspace's runs."""
    asked = {TEMPLATE_FILTER.get(name, name): value for name, value in call.arguments.items()}
    return await in_thread(
        runs.list_runs,
        principal=call.principal,
        max_bytes=settings.MCP_ANSWER_BYTES,
        **asked,
    )


async def cancel_task_run(call: McpToolCall) -> dict[str, Any]:
    """Cancel a run."""
    return await in_thread(
        services.cancel_run, principal=call.principal, run_id=call.arguments["runId"]
    )


async def get_artifact(call: McpToolCall) -> dict[str, Any]:
    """Return a chunk of an artifact."""
    asked = dict(call.arguments)
    artifact_id = asked.pop("artifactId")
    return await in_thread(read_chunk, principal=call.principal, artifact_id=artifact_id, **asked)


async def get_runtime_profile(call: McpToolCall) -> dict[str, Any]:
    """Return the limits."""
    return runs.get_runtime_profile(principal=call.principal)


async def subscribe_task_run_events(call: McpToolCall) -> dict[str, Any]:
    """Return the events behind `after`, waiting for the first one."""
    asked = SUBSCRIBE_DEFAULTS | call.arguments
    run_id = asked["runId"]

    async def tell_steps(_done: int, _total: int, message: str) -> None:
        run = await in_thread(runs.get_run, principal=call.principal, run_id=run_id)
        await call.progress(run["progress"]["doneSteps"], run["progress"]["totalSteps"], message)

    return await long_poll.wait_events(
        principal=call.principal,
        run_id=run_id,
        after=asked["after"],
        limit=asked["limit"],
        max_bytes=settings.MCP_ANSWER_BYTES,
        wait_s=_wait_s(call),
        progress=tell_steps,
    )


async def wait_task_run(call: McpToolCall) -> dict[str, Any]:
    """Return a run once it is terminal or waits for a person."""
    return await long_poll.wait_run(
        principal=call.principal,
        run_id=call.arguments["runId"],
        wait_s=_wait_s(call, WAIT_MAX_MS),
        progress=call.progress,
    )


async def answer_task_run(call: McpToolCall) -> dict[str, Any]:
    """Give a run the answer it waits for."""
    return await in_thread(
        answer_run,
        principal=call.principal,
        run_id=call.arguments["runId"],
        answer=call.arguments["answer"],
    )


async def read_page_content(call: McpToolCall) -> dict[str, Any]:
    """Return the parts of a kept result that were asked for."""
    return await in_thread(
        page_reader.read_page_content, principal=call.principal, call=call.arguments
    )


def _wait_s(call: McpToolCall, unsaid_ms: int = 0) -> float:
    """Return how long the handler may wait, so that the whole call keeps to waitMs."""
    asked_s: float = call.arguments.get("waitMs", unsaid_ms) / 1000
    return max(0.0, asked_s - call.spent_s)


TOOLS = (
    McpTool(
        name="list_task_templates",
        title="List task templates",
        description=(
            "List the kinds of work that run_task_template can do, each with its inputSchema,"
            " exampleInputs and limits. Call it once before the first run_task_template."
        ),
        input_schema=contract.NO_INPUT,
        output_schema=contract.LIST_TASK_TEMPLATES_OUTPUT,
        handler=list_task_templates,
        read_only=True,
        idempotent=True,
    ),
    McpTool(
        name="run_task_template",
        title="Run a task template",
        description=(
            "Start a durable run of a template, for example batch_extract_pages to read web pages"
            " in a real browser. options.mode: sync waits for the result (at most 5 minutes), async"
            " answers at once with a runId, auto (default) waits for small jobs only. The run goes"
            " on whatever happens to this connection: keep runId and use wait_task_run or"
            " get_task_run. With options.idempotencyKey the call can be repeated safely. A run that"
            " failed is a normal answer: read status and error.recovery."
        ),
        input_schema=contract.RUN_TASK_TEMPLATE_INPUT,
        output_schema=contract.RUN_TASK_TEMPLATE_OUTPUT,
        handler=run_task_template,
        # What a run does is its template's: some submit forms or call tools on other machines.
        destructive=True,
        open_world=True,
        needs_stack=True,
    ),
    McpTool(
        name="get_task_run",
        title="Get a run",
        description=(
            "Return a run as it is now: status, progress, and once it ended its result or error and"
            " its artifactIds. To wait for the end use wait_task_run instead of polling."
        ),
        input_schema=contract.RUN_ID_INPUT,
        output_schema=contract.RUN_OUTPUT,
        handler=get_task_run,
        read_only=True,
        idempotent=True,
    ),
    McpTool(
        name="list_task_runs",
        title="List runs",
        description=(
            "List the runs of this workspace, newest first, also those of earlier conversations;"
            " filter by status or templateId, page with limit and offset. total counts all that"
            " match. Runs that ended stay listed for 30 minutes by default."
        ),
        input_schema=contract.LIST_TASK_RUNS_INPUT,
        output_schema=contract.LIST_TASK_RUNS_OUTPUT,
        handler=list_task_runs,
        read_only=True,
        idempotent=True,
    ),
    McpTool(
        name="cancel_task_run",
        title="Cancel a run",
        description=(
            "Cancel a queued or running run for good; what it saved so far is kept. For a run that"
            " had already ended it answers success false with the reason."
        ),
        input_schema=contract.RUN_ID_INPUT,
        output_schema=contract.CANCEL_TASK_RUN_OUTPUT,
        handler=cancel_task_run,
        destructive=True,
        idempotent=True,
    ),
    McpTool(
        name="get_artifact",
        title="Read an artifact",
        description=(
            "Read a chunk of something that a run saved (artifactIds of the run; the first is its"
            " whole result as JSON). Text comes as text, anything else as base64. Until complete is"
            " true, go on at offset + length. To read pages, read_page_content costs far less."
        ),
        input_schema=GET_ARTIFACT_INPUT,
        output_schema=ARTIFACT_CHUNK,
        handler=get_artifact,
        read_only=True,
        idempotent=True,
    ),
    McpTool(
        name="read_page_content",
        title="Read parts of what was read",
        description=(
            "Read the text of pages that a run read, as little of it as you need: outline true"
            " lists pages and headings; sections (heading words or indexes), item (one page) and"
            " grep (RE2 pattern; answers matches) choose; maxChars bounds the answer. While"
            " nextOffset is no null, go on with offset = nextOffset."
        ),
        input_schema=page_reader.READ_PAGE_CONTENT_INPUT,
        output_schema=page_reader.READ_PAGE_CONTENT_OUTPUT,
        handler=read_page_content,
        read_only=True,
        idempotent=True,
    ),
    McpTool(
        name="get_runtime_profile",
        title="Get the runtime's limits",
        description=(
            "Return the limits of this installation: runs at once, urls per run, time limits, chunk"
            " size, how long runs and artifacts are kept, your trust level."
        ),
        input_schema=contract.NO_INPUT,
        output_schema=contract.RUNTIME_PROFILE_OUTPUT,
        handler=get_runtime_profile,
        read_only=True,
        idempotent=True,
    ),
    McpTool(
        name="subscribe_task_run_events",
        title="Follow a run's events",
        description=(
            "Return the run's events behind seq `after`, waiting up to waitMs for the first."
            " Call again with after = lastSeq until terminal is true: none is missed or doubled."
            " Use it to follow single steps; to wait for the end only, use wait_task_run."
        ),
        input_schema=contract.SUBSCRIBE_INPUT,
        output_schema=contract.SUBSCRIBE_OUTPUT,
        handler=subscribe_task_run_events,
        read_only=True,
        idempotent=True,
        needs_stack=True,
    ),
    McpTool(
        name="wait_task_run",
        title="Wait for a run",
        description=(
            "Wait up to waitMs (at most, and unless said, 55000) and return the run as soon as it"
            " has ended or waits for a person (waitingFor); else as it is when the time is up: then"
            " call it again."
        ),
        input_schema=contract.WAIT_TASK_RUN_INPUT,
        output_schema=contract.RUN_OUTPUT,
        handler=wait_task_run,
        read_only=True,
        idempotent=True,
        needs_stack=True,
    ),
    McpTool(
        name="answer_task_run",
        title="Answer a run's question",
        description=(
            "Answer a run whose waitingFor.type is answer (its question is in waitingFor.question,"
            " perhaps with suggestions), so that it goes on. Confirmations are not given here: a"
            " person gives them."
        ),
        input_schema=contract.ANSWER_TASK_RUN_INPUT,
        output_schema=contract.CANCEL_TASK_RUN_OUTPUT,
        handler=answer_task_run,
        open_world=True,
        needs_stack=True,
    ),
)
