"""The toolset `runtime`: the calls of S0 (templates, runs, events, artifacts, the profile), and
`read_page_content`, which reads parts of a result.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from artifacts.api.schemas import ARTIFACT_CHUNK, GET_ARTIFACT_INPUT
from artifacts.chunks import read_chunk
from decisions.foundation.infra.threads import in_thread
from mcp_server.protocol.run_answers import (
    brief_run,
    concise_run,
    fenced_events,
    fenced_schema,
)
from mcp_server.tools.registry import McpTool, McpToolCall
from mcp_server.tools.waiting_runs import wait_with_person
from runners.untrusted_text import fence_object
from runs.api.schemas import runs as schemas
from runs.conversations.run_messages import message_of_run
from runs.queries import page_reader, runs, templates
from runs.queries.run_lists import list_runs_of_call
from runs.streaming import long_poll
from runs.streaming.long_poll import WAIT_MAX_MS
from runs.submission import cancel
from runs.submission.answer import answer_run

SUBSCRIBE_DEFAULTS = {"after": 0, "limit": 100}


async def list_task_templates(call: McpToolCall) -> dict[str, Any]:
    """Return every template, or one; in full or briefly."""
    template_id = call.arguments.get("templateId")
    return await in_thread(
        templates.list_task_templates,
        principal=call.principal,
        template_id=template_id,
        brief=call.arguments.get("brief", template_id is None),
    )


async def run_task_template(call: McpToolCall) -> dict[str, Any]:
    """Submit a run and, if its mode says so, wait for its result. An agent_task in a browser
    session goes on in the session's task.
    """
    arguments = dict(call.arguments)
    brief = arguments.pop("brief", False)
    message, arguments["inputs"] = await in_thread(
        message_of_run,
        principal=call.principal,
        session_id=arguments.get("sessionId"),
        template_id=arguments["templateId"],
        inputs=arguments["inputs"],
    )
    answer = await long_poll.submit_and_wait(
        principal=call.principal, call=arguments, progress=call.progress, message=message
    )
    required = schemas.RUN_TASK_TEMPLATE_OUTPUT["required"]
    return brief_run(answer, required) if brief else concise_run(answer)


async def get_task_run(call: McpToolCall) -> dict[str, Any]:
    """Return a run in its current state."""
    run = await in_thread(runs.get_run, principal=call.principal, run_id=call.arguments["runId"])
    return concise_run(run)


async def list_task_runs(call: McpToolCall) -> dict[str, Any]:
    """Return a page of the workspace's runs."""
    page = await in_thread(
        list_runs_of_call,
        principal=call.principal,
        call=call.arguments,
        max_bytes=settings.MCP_ANSWER_BYTES,
    )
    return {**page, "runs": [concise_run(run) for run in page["runs"]]}


async def cancel_task_run(call: McpToolCall) -> dict[str, Any]:
    """Cancel a run."""
    return await in_thread(
        cancel.cancel_run, principal=call.principal, run_id=call.arguments["runId"]
    )


async def get_artifact(call: McpToolCall) -> dict[str, Any]:
    """Return a chunk of an artifact."""
    chunk = dict(call.arguments)
    artifact_id = chunk.pop("artifactId")
    return await in_thread(read_chunk, principal=call.principal, artifact_id=artifact_id, **chunk)


async def get_runtime_profile(call: McpToolCall) -> dict[str, Any]:
    """Return the limits of this installation."""
    return runs.get_runtime_profile(principal=call.principal)


async def subscribe_task_run_events(call: McpToolCall) -> dict[str, Any]:
    """Return the events after seq `after`, waiting for the first one."""
    arguments = SUBSCRIBE_DEFAULTS | call.arguments
    run_id = arguments["runId"]

    async def report_steps(_done: int, _total: int, message: str) -> None:
        run = await in_thread(runs.get_run, principal=call.principal, run_id=run_id)
        await call.progress(run["progress"]["doneSteps"], run["progress"]["totalSteps"], message)

    page = await long_poll.wait_events(
        principal=call.principal,
        run_id=run_id,
        after=arguments["after"],
        limit=arguments["limit"],
        max_bytes=settings.MCP_ANSWER_BYTES,
        wait_s=_wait_s(call),
        progress=report_steps,
    )
    return fenced_events(page)


async def wait_task_run(call: McpToolCall) -> dict[str, Any]:
    """Return a run once it is terminal or waits for a person."""
    run = await wait_with_person(call, call.arguments["runId"], _wait_s(call, WAIT_MAX_MS))
    required = schemas.BRIEF_RUN_OUTPUT["required"]
    return brief_run(run, required) if call.arguments.get("brief") else concise_run(run)


async def answer_task_run(call: McpToolCall) -> dict[str, Any]:
    """Answer the question that a run waits for."""
    return await in_thread(
        answer_run,
        principal=call.principal,
        run_id=call.arguments["runId"],
        answer=call.arguments["answer"],
    )


async def read_page_content(call: McpToolCall) -> dict[str, Any]:
    """Return the requested parts of a stored result."""
    read = await in_thread(
        page_reader.read_page_content, principal=call.principal, call=call.arguments
    )
    return fence_object(read)


def _wait_s(call: McpToolCall, default_ms: int = 0) -> float:
    """Return how long the handler may wait for the whole call to take at most waitMs."""
    wait_s: float = call.arguments.get("waitMs", default_ms) / 1000
    return max(0.0, wait_s - call.elapsed_s)


TOOLS = (
    McpTool(
        name="list_task_templates",
        description=(
            "List the templates of run_task_template, each with a line and an example. templateId"
            " returns one with its inputSchema and limits; brief false returns all in full."
        ),
        input_schema=schemas.LIST_TASK_TEMPLATES_INPUT,
        output_schema=schemas.LIST_SOME_TASK_TEMPLATES_OUTPUT,
        handler=list_task_templates,
        read_only=True,
    ),
    McpTool(
        name="run_task_template",
        title="Run a task template",
        description=(
            "Start a durable run of a template, for example batch_extract_pages to read web pages"
            " in a real browser. Use a template where one fits: one call does the whole job; the"
            " browser tools (task_start) are for pages to look at step by step. The run continues"
            " if this connection is lost: keep runId for wait_task_run. A failed run is a normal"
            " result: read status and error.recovery."
        ),
        input_schema=schemas.BRIEF_RUN_TASK_TEMPLATE_INPUT,
        output_schema=schemas.BRIEF_RUN_TASK_TEMPLATE_OUTPUT,
        handler=run_task_template,
        # It depends on the template: some submit forms or call tools on other machines.
        destructive=True,
        open_world=True,
        needs_stack=True,
    ),
    McpTool(
        name="get_task_run",
        title="Get a run",
        description=(
            "Return a run's current status and progress, and once it has ended its result or error"
            " and its artifactIds, in the fields of run_task_template. To wait for the end:"
            " wait_task_run."
        ),
        input_schema=schemas.RUN_ID_INPUT,
        output_schema=schemas.RUN_OUTPUT,
        output_as_of="run_task_template",
        handler=get_task_run,
        read_only=True,
    ),
    McpTool(
        name="list_task_runs",
        title="List runs",
        description=(
            "List or search the runs of this workspace, newest first. total counts all matches."
            " Ended runs stay listed for 30 minutes by default."
        ),
        input_schema=schemas.BRIEF_LIST_TASK_RUNS_INPUT,
        output_schema=schemas.LIST_TASK_RUNS_OUTPUT,
        handler=list_task_runs,
        read_only=True,
    ),
    McpTool(
        name="cancel_task_run",
        title="Cancel a run",
        description=(
            "Cancel a queued or running run permanently; its saved artifacts are kept. For a run"
            " that has already ended it returns success false with the reason."
        ),
        input_schema=schemas.RUN_ID_INPUT,
        output_schema=schemas.CANCEL_TASK_RUN_OUTPUT,
        handler=cancel_task_run,
        destructive=True,
        idempotent=True,
    ),
    McpTool(
        name="get_artifact",
        title="Read an artifact",
        description=(
            "Read a chunk of an artifact of a run (the run's artifactIds; the first is its whole"
            " result as JSON). Text is returned as text, anything else as base64. Until complete is"
            " true, continue at offset + length. To read pages, read_page_content costs far less."
        ),
        input_schema=GET_ARTIFACT_INPUT,
        output_schema=ARTIFACT_CHUNK,
        handler=get_artifact,
        read_only=True,
    ),
    McpTool(
        name="read_page_content",
        title="Read parts of pages",
        description=(
            "Read only the parts you need of the pages that a run read: outline lists pages and"
            " headings; sections (heading words or indexes), item (one page) and grep (RE2"
            " pattern) select text, and can be combined: outline or grep of some sections only."
            " Texts are Markdown: links are [text](address), table rows | a | b |. Continue with"
            " offset = nextOffset."
        ),
        input_schema=page_reader.READ_PAGE_CONTENT_INPUT,
        output_schema=fenced_schema(page_reader.READ_PAGE_CONTENT_OUTPUT),
        handler=read_page_content,
        read_only=True,
    ),
    McpTool(
        name="get_runtime_profile",
        title="Get the runtime's limits",
        description=(
            "Return the limits of this installation (concurrent runs, urls per run, time limits,"
            " chunk size, lifetime of runs and artifacts) and your trust level."
        ),
        input_schema=schemas.NO_INPUT,
        output_schema=schemas.RUNTIME_PROFILE_OUTPUT,
        handler=get_runtime_profile,
        read_only=True,
    ),
    McpTool(
        name="subscribe_task_run_events",
        title="Follow a run's events",
        description=(
            "Return the run's events after seq `after`, waiting up to waitMs for the first."
            " Call again with after = lastSeq until terminal is true. To wait only for the end,"
            " use wait_task_run."
        ),
        input_schema=schemas.SUBSCRIBE_INPUT,
        output_schema=schemas.SUBSCRIBE_OUTPUT,
        handler=subscribe_task_run_events,
        read_only=True,
        needs_stack=True,
    ),
    McpTool(
        name="wait_task_run",
        title="Wait for a run",
        description=(
            "Wait up to waitMs and return the run, in the fields of run_task_template, once it has"
            " ended or waits for a person (waitingFor), else its current state after that time:"
            " then call again."
        ),
        input_schema=schemas.BRIEF_WAIT_TASK_RUN_INPUT,
        output_schema=schemas.BRIEF_RUN_OUTPUT,
        output_as_of="run_task_template",
        handler=wait_task_run,
        read_only=True,
        needs_stack=True,
    ),
    McpTool(
        name="answer_task_run",
        title="Answer a run's question",
        description=(
            "Answer a run whose waitingFor.type is answer, so that it continues. The question is in"
            " waitingFor.question, sometimes with suggestions. Confirmations are not given here but"
            " by a person."
        ),
        input_schema=schemas.ANSWER_TASK_RUN_INPUT,
        output_schema=schemas.CANCEL_TASK_RUN_OUTPUT,
        handler=answer_task_run,
        open_world=True,
        needs_stack=True,
    ),
)
