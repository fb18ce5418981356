"""Requests of a long run: each begins with the one before it; pages are at the end, newest only."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from runners.llm.base import LlmSettings
from runs.agent.loop import first_step
from runs.agent.pages.observations import Observation, newest_observations, observation_message
from runs.agent.summary import REQUEST, summary_step
from runs.models import RunStep
from runs.task_templates.base import StepView
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import READ, SubmitGoal, execute_run
from tests.support.agent.browsing_model import serve_shop
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.page_server import PageServer

MARK = b"The newest observation of this tab"
CACHE_MARK = b',"cache_control":{"type":"ephemeral"}'


def repeated_part(request: ModelRequest) -> bytes:
    """Return a request up to its picture and observations, without marks for the cache."""
    raw = request.raw.replace(CACHE_MARK, b"")
    if MARK not in raw:  # the first request ends with the goal
        return raw[: raw.index(b"asked otherwise.")]
    picture = b'{"type":"image"'
    if picture in raw:  # Anthropic's: in the last result
        return raw[: raw.index(picture)].rstrip(b",")
    return raw[: raw.rindex(b'{"role":"user"', 0, raw.index(MARK))].rstrip(b",")


def browse(url: str) -> list[Turn]:
    """Return turns that open pages, read a file and answer."""
    opening = [Turn("", [Call("task_start", {"url": url}, f"o{n}")]) for n in range(3)]
    reading = [Turn("I read.", [replace(READ, id=f"r{n}")]) for n in range(3)]
    both = Turn("", [replace(READ, id="r9"), Call("task_start", {"url": url}, "o9")])
    turns = [opening[0], reading[0], reading[1], opening[1], both, reading[2], opening[2]]
    return [*turns, complete()]


@pytest.mark.parametrize("provider", ["openai", pytest.param("anthropic", marks=pytest.mark.slow)])
def test_each_request_begins_with_the_one_before_it_up_to_the_observations(
    model: ModelServer,
    page_server: PageServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    agent_settings: Any,
    provider: Any,
) -> None:
    agent_settings.LLM = LlmSettings(provider, "scripted", f"{model.url}/v1", "k", vision="on")
    model.script = browse(serve_shop(page_server))
    run = execute_run(submit_goal(), worker)
    assert run.status == "succeeded", run.error
    assert len(model.requests) == 8
    for before, after in pairwise(model.requests):
        start = repeated_part(before)
        assert len(start) > 150
        assert after.raw.replace(CACHE_MARK, b"")[: len(start)] == start
        assert before.body["tools"] == after.body["tools"]
    shown = [request.raw.count(MARK) for request in model.requests]
    pictures = [len(re.findall(rb'"type":"image(?:_url)?"', one.raw)) for one in model.requests]
    assert shown == [0, *[1] * 7]
    assert pictures == [0, *[1] * 7]


def read_again(text: str) -> list[Turn]:
    return [Turn(text, [replace(READ, id=f"read{n}")]) for n in range(8)]


def test_old_turns_are_summarized_when_the_context_is_nearly_full(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, agent_settings: Any
) -> None:
    agent_settings.LLM = replace(agent_settings.LLM, context_tokens=4000)
    model.script = [*read_again("What was read. " * 70), Turn("It is all read.")]
    model.script += [complete("Read.")]
    run = execute_run(submit_goal(tools=["read_file"]), worker)
    assert run.status == "succeeded", run.error
    summaries = [one for one in model.requests if REQUEST in str(one.body["messages"][-1])]
    (step,) = RunStep.objects.filter(run_id=run.id, name="summary")
    assert (len(summaries), step.output["summary"]) == (1, "It is all read.")
    last = model.requests[-1].body["messages"]
    contents = [one["content"] for one in last if one["role"] == "user"]
    assert contents[0].startswith("Do it.")
    assert contents[1].endswith("It is all read.")
    assert [one["role"] for one in last].count("tool") == 4
    assert run.result["usage"]["turns"] == 9
    assert run.result["usage"]["inputTokens"] == 1000


def test_a_run_goes_on_without_a_summary_that_failed(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, agent_settings: Any
) -> None:
    agent_settings.LLM = replace(agent_settings.LLM, context_tokens=4000)
    refused = Turn(status=400)
    model.script = [*read_again("What was read. " * 70), refused, complete("Read.")]
    run = execute_run(submit_goal(tools=["read_file"]), worker)
    assert (run.status, run.result["answer"]) == ("succeeded", "Read.")
    assert [one["role"] for one in model.requests[-1].body["messages"]].count("tool") == 8


@pytest.mark.parametrize("answer", [Turn(" "), Turn(status=400)], ids=["empty", "failed"])
def test_a_summary_that_brought_nothing_is_not_requested_again_at_once(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    agent_settings: Any,
    answer: Turn,
) -> None:
    agent_settings.LLM = replace(agent_settings.LLM, context_tokens=4000)
    turns = [*read_again("What was read. " * 70), *read_again("More. " * 150), complete("Read.")]
    model.answer = lambda request: (
        answer if REQUEST in str(request.body["messages"][-1]) else turns.pop(0)
    )
    run = execute_run(submit_goal(tools=["read_file"]), worker)
    assert run.status == "succeeded", run.error
    requested = [one for one in model.requests if REQUEST in str(one.body["messages"][-1])]
    assert 1 <= len(requested) <= 3


def test_older_workers_get_no_steps_that_they_do_not_know(settings: Any) -> None:
    settings.ROLLING_UPGRADE = True
    inputs = {"startUrl": "https://shop.example/", "tools": ["task_start"]}
    assert first_step(inputs).input["kind"] == "turn"
    context = {"bytes": 1000, "limit": 1000}
    turn = {"kind": "turn", "turn": 12}
    journal = [StepView(0, "turn 12", turn, True, {"context": context}, None)]
    assert summary_step(journal) is None
    settings.ROLLING_UPGRADE = False
    assert first_step(inputs).input["kind"] == "call"
    assert summary_step(journal) is not None


def observed(tab: int, text: str, turn: int = 1, **fields: Any) -> StepView:
    """Return a step that read a page."""
    step = {"kind": "page", "turn": turn, "tabId": tab}
    output = {"ok": True, "observation": {"text": text}, "result": {}, **fields}
    return StepView(0, "page", step, True, output, None)


def called(tool: str, **args: Any) -> StepView:
    """Return a step that called an action."""
    step = {"kind": "call", "turn": 2, "tool": tool, "args": args, "toolCallId": "c"}
    return StepView(0, tool, step, True, {"ok": True, "result": {"text": "again"}}, None)


def test_the_newest_observation_of_each_tab_is_shown_the_newest_last() -> None:
    journal = [observed(1, "old", picture="art_1"), observed(2, "two"), observed(1, "new")]
    assert [(one.tab_id, one.fields["text"]) for one in newest_observations(journal)] == [
        (2, "two"),
        (1, "new"),
    ]
    journal.append(called("browser_observe", tabId=2))
    newest = newest_observations(journal)[-1]
    assert (newest.tab_id, newest.fields["text"], newest.picture) == (2, "again", "")


@pytest.mark.parametrize(
    ("call", "left"),
    [
        (called("task_stop"), []),
        (called("task_start"), []),
        (called("task_start", reuseExistingTab=True), [1, 2]),
        (called("browser_close_tab", tabId=1), [2]),
    ],
)
def test_tabs_that_a_call_closes_are_not_shown_any_more(call: StepView, left: list[int]) -> None:
    journal = [observed(1, "one"), observed(2, "two"), call]
    assert [one.tab_id for one in newest_observations(journal)] == left


def test_a_tab_that_was_replaced_is_not_shown_any_more() -> None:
    journal = [observed(1, "one"), observed(1, "two", 2, newTab={"tabId": 2})]
    assert [one.tab_id for one in newest_observations(journal)] == [2]


def test_an_observation_by_the_model_keeps_the_picture_of_the_page() -> None:
    journal = [observed(1, "page", picture="art_1"), called("browser_observe", tabId=1)]
    (newest,) = newest_observations(journal)
    assert (newest.fields["text"], newest.picture) == ("again", "art_1")


@pytest.mark.parametrize(("size", "tabs"), [(100_000, 5), (9000, 3), (100, 1)])
def test_observations_take_a_third_of_the_messages_and_the_newest_is_always_there(
    size: int, tabs: int
) -> None:
    pages = [Observation(tab, {"text": f"{tab}" * 900}) for tab in range(1, 6)]
    (message,) = observation_message(pages, None, size=size)
    shown = [tab for tab in range(1, 6) if f"{tab}" * 900 in message.content]
    assert shown == list(range(6 - tabs, 6))


def test_an_observation_that_is_cut_ends_with_the_way_to_read_on() -> None:
    whole = {"text": "[1] button", "cut": {"next": 37, "left": 12}}
    (message,) = observation_message([Observation(7, whole)], None, size=100)
    assert message.content.endswith("12 left: browser_observe with from: 37")
    assert '"cut"' not in message.content
