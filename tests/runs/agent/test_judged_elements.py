"""What was judged is what is done: a confirmed click presses the element that the person saw, or
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.models import Decision
from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import SubmitGoal, execute_run, observations, tool_results
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.editor_page import DELETE, Editor
from tests.support.browser.page_server import PageServer
from tests.support.decisions.confirmations import answer_confirmation


@pytest.fixture
def editor(page_server: PageServer) -> Editor:
    return Editor(page_server)


@pytest.fixture
def act(
    model: ModelServer, editor: Editor, submit_goal: SubmitGoal, worker: WorkerProcess
) -> Callable[..., Run]:
    """Run an agent that opens the editor and makes one call, until it waits or ends."""

    def run(name: str, label: str = "Save draft", *, before: str = "", **args: Any) -> Run:
        editor.change = before

        def answer(request: Any) -> Turn:
            results = tool_results(request)
            if not results:
                return Turn("", [Call("task_start", {"url": editor.url}, "open")])
            if len(results) > 1:
                return complete()
            lines = observations(request)[-1]["text"].splitlines()
            found = label if any(label in one for one in lines) else "Save"
            number = next(int(one[1 : one.index("]")]) for one in lines if f'"{found}' in one)
            tab = {"tabId": results[0]["result"]["tabId"]}
            return Turn("", [Call(name, {**tab, "clickId": number, **args}, "act")])

        model.answer = answer
        return execute_run(submit_goal(), worker)

    return run


def confirm_each(tool: str) -> None:
    create_rule(RuleFields("confirm", tool=tool, reason="test"), actor="t")


def test_an_element_that_becomes_another_one_while_a_person_decides_is_not_pressed(
    act: Callable[..., Run], editor: Editor, worker: WorkerProcess
) -> None:
    confirm_each("browser_click")
    run = act("browser_click")
    assert 'button "Save draft" submits' in run.waiting_for["question"]
    editor.make(DELETE)
    answer_confirmation(run)
    run = execute_run(run.id, worker)
    assert editor.pressed == []
    assert 'button "Delete account" submits' in run.waiting_for["question"]
    shown = Decision.objects.latest("id").arguments
    assert 'button "Save draft" submits' in shown["elementBefore"]
    here = editor.url.removesuffix("/editor")
    assert (shown["submitsBefore"], shown["submits"]) == (
        f"POST {here}/drafts?***",
        f"POST {here}/account",
    )


@pytest.mark.slow
def test_an_element_that_changes_after_each_confirmation_ends_the_call_with_the_difference(
    act: Callable[..., Run], editor: Editor, worker: WorkerProcess, model: ModelServer
) -> None:
    confirm_each("browser_click")
    run = act("browser_click")
    for number in ("one", "two", "three"):
        editor.make(f"b.textContent = 'Save {number}'")
        answer_confirmation(run)
        run = execute_run(run.id, worker)
    assert (run.status, editor.pressed) == ("succeeded", [])
    error = tool_results(model.requests[-1])[1]["error"]
    assert (error["code"], error["details"]["reason"]) == ("ELEMENT_NOT_FOUND", "changed")
    assert error["details"]["effect"] == "none"
    before, after = error["details"]["changed"]["element"]
    assert ("Save two" in before, "Save three" in after) == (True, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "f.action = '/drafts?key=k2'",
        "f.method = 'get'",
        "b.setAttribute('role', 'link')",
        "b.textContent = 'Save 10 €'; later = () => b.textContent = 'Save 1000 €'",
        "b.replaceWith(Object.assign(b.cloneNode(true)))",
        "history.pushState({}, '', '/editor?of=another')",
        "b.setAttribute('formaction', '/account')",
        "b.type = 'button'",
    ],
    ids=["query", "method", "role", "money", "node", "address", "formaction", "type"],
)
def test_each_fact_of_the_element_is_confirmed_anew(
    act: Callable[..., Run], editor: Editor, worker: WorkerProcess, change: str
) -> None:
    confirm_each("browser_click")
    first, _, second = change.partition("; later = () => ")
    run = act("browser_click", before=first if second else "")
    decision = run.waiting_for["decisionId"]
    editor.make(second or first)
    answer_confirmation(run)
    run = execute_run(run.id, worker)
    assert editor.pressed == []
    if "replaceWith" in change:
        assert run.status == "succeeded"  # the agent gets the error: the element is gone
    else:
        assert run.waiting_for["decisionId"] > decision
    assert "k1" not in str(list(Decision.objects.values_list("arguments", flat=True)))


@pytest.mark.slow
def test_a_number_may_count_while_a_person_decides_if_both_lines_are_shown(
    act: Callable[..., Run], editor: Editor, worker: WorkerProcess, model: ModelServer
) -> None:
    confirm_each("browser_click")
    run = act("browser_click", "More (3)")
    editor.make("a.textContent = 'More (12)'")
    answer_confirmation(run)
    assert execute_run(run.id, worker).status == "succeeded"
    assert editor.pressed == ["/more"]
    warning = str(tool_results(model.requests[-1])[1])
    assert "More (3)" in warning
    assert "More (12)" in warning


@pytest.mark.slow
@pytest.mark.parametrize("event", ["pointermove", "pointerdown", "mousedown", "mouseup"])
def test_a_change_during_the_movement_of_the_mouse_is_not_pressed(
    act: Callable[..., Run], editor: Editor, worker: WorkerProcess, event: str
) -> None:
    confirm_each("browser_click")
    run = act("browser_click")
    editor.make(f"addEventListener('{event}', () => {{ {DELETE} }}, {{once: true, capture: true}})")
    answer_confirmation(run)
    execute_run(run.id, worker)
    assert editor.pressed == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "label", "args", "is_asked"),
    [
        ("browser_click", "Save draft", {}, True),
        ("browser_drag", "Save draft", {"dx": 1}, True),
        ("browser_press_key", "Save draft", {"key": "Space"}, True),
        ("browser_press_key", "Title", {"key": "Enter"}, True),
        ("browser_type", "Title", {"text": "a", "submit": True}, True),
        ("browser_type", "Title", {"text": "a"}, False),
        ("browser_press_key", "Title", {"key": "a"}, False),
        ("browser_click", "More (3)", {}, False),
    ],
)
def test_a_rule_on_submit_form_covers_each_way_to_submit(
    act: Callable[..., Run],
    editor: Editor,
    name: str,
    label: str,
    args: dict[str, Any],
    is_asked: bool,
) -> None:
    confirm_each("submit_form")
    run = act(name, label, **args)
    assert (run.waiting_for is not None) == is_asked
    assert editor.pressed == ([] if is_asked or label == "Title" else ["/more"])


def test_a_rule_that_denies_submit_form_denies_a_click_that_submits(
    act: Callable[..., Run], editor: Editor, model: ModelServer
) -> None:
    create_rule(RuleFields("deny", tool="submit_form", reason="test"), actor="t")
    assert act("browser_click").status == "succeeded"
    assert tool_results(model.requests[-1])[1]["error"]["code"] == "POLICY_DENIED"
    assert editor.pressed == []
