"""Browser actions of a caller with a model of its own, each performed as a run.

A browser session and a task belong together: the session keeps the page between the actions, and
the task has the actions as messages, its live page and the takeover by a person. The session
outlives the caller's process, and a message to its task lets the agent go on from the same page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from django.db import IntegrityError

from decisions.foundation.errors import InvalidInput, RunNeedsConfirmation, ToolNotFound
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal
from runners.actions.catalogue import ACTIONS, TASK_START, TASK_STOP, TYPE
from runners.browser_sessions import find_session
from runners.invocation.arguments import check_args, further_scopes_of
from runners.paired_browser.choice import (
    ANY_PAIRED,
    SELECTED,
    choose_paired_browser,
    is_paired_browser,
)
from runners.targets.targets import Caller
from runners.tools.base import Tool
from runners.tools.registry import get_tool
from runs.agent.call_events import start_event_data
from runs.agent.journal_view import TAKEOVERS_ENDED
from runs.calls.direct.as_run import MAX_WAIT_S, START_MS, with_run_scopes
from runs.calls.direct.refusals import recording_refusals
from runs.calls.shown_page import types_secret
from runs.conversations.errors import ActionUnfinished, PageTakenOver, SessionWaits
from runs.conversations.messages import UserMessage, new_task, title_of
from runs.conversations.run_messages import task_of_session
from runs.models import TERMINAL, Run, Task, TaskStatus
from runs.sessions.services import create_session
from runs.streaming.long_poll import wait_run
from runs.submission.submit import submit_run
from runs.task_templates.builtin.session_action import MASKS_TEXT

TEMPLATE = "session_action"
SESSION_NAME = "browser of an agent host"
_KNOWN_FIELDS = ("tabId", TAKEOVERS_ENDED)  # of the last result, for the next action
_STEP_MS = 15_000  # to observe the page after the action


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """What an action did.

    Attributes:
        outcome: {ok, result | error, page?, newTab?, tabId?}, as `session_action` returns it.
    """

    session_id: str
    run_id: str
    outcome: Mapping[str, Any]


async def perform_action(
    *,
    principal: Principal,
    name: str,
    args: Mapping[str, Any],
    session_id: str | None,
    target_id: str | None = None,
) -> ActionOutcome:
    """Perform a browser action in a session and return its outcome with the page after it.

    Args:
        session_id: the session; without one `task_start` creates one.
        target_id: for a new session, the caller's paired browser: `plugin`, or a plc_… id.

    Raises:
        ToolNotFound: There is no such action.
        InvalidInput: The arguments are invalid, or the action needs a session, or has one and a
            target.
        TargetNotFound, NoBrowserPaired: As `paired_browser.choice.choose_paired_browser`.
        SessionNotFound, TrustNotAllowed: As `find_session`.
        Forbidden: The caller lacks the scope tools:write, or for an upload artifacts:read.
        PageTakenOver: A person has the page.
        SessionWaits: A person has to decide about the session's last action.
        ActionUnfinished: The action has not ended yet, or waits until a person gives the page back.
        PolicyDenied: Policy denies the run.
        RunNeedsConfirmation: A person has to confirm the action; then its run performs it.
    """
    used_session_id, run_id = await in_thread(_submit, principal, name, args, session_id, target_id)
    wait_s = min(MAX_WAIT_S, _timeout_ms(name) / 1000 + 2)
    # A host that stops waiting cancels nothing: the action ends by itself.
    run = await wait_run(principal=with_run_scopes(principal), run_id=run_id, wait_s=wait_s)
    return ActionOutcome(used_session_id, run_id, _outcome_of(run))


@dataclass(frozen=True, slots=True)
class _Action:
    """A requested action, in the task of a session; without a task, the action creates it."""

    owner: Principal
    name: str
    args: Mapping[str, Any]
    session_id: str
    task: Task | None
    known: Mapping[str, Any]

    def submit(self) -> str:
        """Submit its run, and return the run's id. Commits."""
        event = start_event_data({"tool": self.name, "args": self.args, "toolCallId": ""})
        content = f"{self.name} {orjson.dumps(event['args']).decode()}"
        title = title_of(f"Browser session {self.args.get('url', '')}")
        task = self.task or new_task(self.owner, title, session_id=self.session_id)
        message = UserMessage(
            self.owner,
            task.id,
            content,
            session_id=self.session_id,
            new_task=None if self.task else task,
        )
        submitted = submit_run(
            principal=self.owner,
            template_id=TEMPLATE,
            inputs=self._inputs(),
            session_id=self.session_id,
            options={"mode": "sync", "timeoutMs": _timeout_ms(self.name)},
            message=message,
        )
        return submitted.run_id

    def _inputs(self) -> dict[str, Any]:
        """Return the run's inputs: what is typed into a secret field is a secret one."""
        inputs = {"action": self.name, "args": dict(self.args), **self.known}
        if self.name == TYPE.name and self.task is not None:
            inputs[MASKS_TEXT] = types_secret(self.task.id, {**self.known, **self.args})
        return inputs


def _submit(
    principal: Principal,
    name: str,
    args: Mapping[str, Any],
    session_id: str | None,
    target_id: str | None,
) -> tuple[str, str]:
    """Submit the run of an action; return the ids of its session and of the run. Commits."""
    with recording_refusals(principal=principal, name=name):
        tool = _action_tool(name)
        for scope in ("tools:write", *further_scopes_of(tool)):
            principal.require(scope)
        if session_id is None and name != TASK_START.name:
            raise InvalidInput("sessionId: there is no session yet; call task_start first.")
        task = None
        if session_id is not None:
            find_session(principal, session_id)
            task = task_of_session(principal, session_id)
        known = {} if task is None else _known_state(task)
        _check(tool, args, known)
        if task is not None:
            _check_is_free(task)
        owner = with_run_scopes(principal)
        known |= _chosen_browser(principal, target_id, task, session_id)
        if session_id is None:
            session_id = str(create_session(principal=owner, name=SESSION_NAME)["sessionId"])
        action = _Action(owner, name, args, session_id, task, known)
        try:
            return session_id, action.submit()
        except IntegrityError:  # a concurrent call created the session's task first
            if task is not None or (task := task_of_session(principal, session_id)) is None:
                raise
            return session_id, replace(action, task=task).submit()


def _chosen_browser(
    principal: Principal, target_id: str | None, task: Task | None, session_id: str | None
) -> dict[str, Any]:
    """Return the input with the paired browser of a session, if it acts in one.

    Raises:
        InvalidInput: The target is no browser, or the session exists.
        TargetNotFound, NoBrowserPaired: As `choose_paired_browser`.
    """
    if task is not None and target_id is None:
        return {SELECTED: task.selected_client_id} if task.selected_client_id else {}
    if target_id is None:
        return {}
    if session_id is not None:
        raise InvalidInput("targetId: only the task_start that begins a session chooses a browser.")
    if not is_paired_browser(target_id):
        raise InvalidInput(f"targetId: it has to be {ANY_PAIRED}, or the plc_… id of your browser.")
    return {SELECTED: choose_paired_browser(Caller.of(principal), target_id).id}


def _action_tool(name: str) -> Tool:
    tool = get_tool(name)
    if tool is None or name not in ACTIONS:
        raise ToolNotFound(f"There is no tool {name[:64]!r}.")
    return tool


def _check(tool: Tool, args: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Check the arguments; where the host may omit the tab, the session's last one counts."""
    needs_tab = "tab_id" in ACTIONS[tool.name].parameters.model_fields
    tab = {"tabId": known.get("tabId") or 0} if needs_tab else {}
    check_args(tool, {**tab, **args})


def _known_state(task: Task) -> dict[str, Any]:
    """Return what the host knows about the page from the last action: tab, URL, takeovers.

    What the result does not have (the list of tabs, a failed task_start) is as it was before that
    action; after task_stop no tab is known.
    """
    runs = Run.objects.filter(task_id=task.id, template_id=TEMPLATE, result__isnull=False)
    last = runs.order_by("-created_at", "-id").values("inputs", "result").first()
    if last is None:
        return {}
    inputs, result = last["inputs"], last["result"] or {}
    if inputs["action"] == TASK_STOP.name and result.get("ok"):
        return _only(result, TAKEOVERS_ENDED)
    given = {key: result[key] for key in _KNOWN_FIELDS if result.get(key) is not None}
    known = _only(inputs, "url", *_KNOWN_FIELDS) | given
    for shown in (result.get("page"), result.get("result"), result.get("newTab")):
        if isinstance(shown, Mapping) and isinstance(shown.get("url"), str):
            return known | {"url": shown["url"]}
    return known


def _check_is_free(task: Task) -> None:
    """Refuse an action while a person has the page or has to decide; other runs are waited for.

    Raises:
        PageTakenOver: A person has the page.
        SessionWaits: A person has to decide about the session's last action.
    """
    if task.status == TaskStatus.TAKEOVER:
        raise PageTakenOver(
            "A person has taken over the page; call again once it has been given back.",
            details={"taskId": task.id, "takenOver": True},
        )
    waiting = Run.objects.filter(
        task_id=task.id, ended_at__isnull=True, waiting_for__isnull=False
    ).first()
    if waiting is not None:
        raise SessionWaits(
            "The session's last action waits for a person; wait_task_run returns its outcome.",
            details={"runId": waiting.id, "waitingFor": waiting.waiting_for},
        )


def _timeout_ms(name: str) -> int:
    return ACTIONS[name].timeout_ms + _STEP_MS + START_MS


def _outcome_of(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the outcome of a run's action.

    Raises:
        RunNeedsConfirmation: A person has to confirm it.
    """
    waiting = run.get("waitingFor") or {}
    if waiting.get("type") == "confirmation":
        raise RunNeedsConfirmation(
            "A person has to confirm this action; then it is performed. wait_task_run returns its"
            f" outcome. {waiting.get('question', '')}".rstrip(),
            details={"runId": run["runId"], **_only(waiting, "decisionId", "expiresAt")},
        )
    if waiting:
        raise ActionUnfinished(
            "A person has taken over the page; the action waits until it has been given back.",
            details={"runId": run["runId"], "takenOver": True},
        )
    result: Mapping[str, Any] | None = run.get("result")
    if run["status"] in TERMINAL and result is not None:  # of a failed action too
        return result
    if run["status"] not in TERMINAL:
        raise ActionUnfinished(
            "The action has not ended yet; wait_task_run returns its outcome.",
            details={"runId": run["runId"], "status": run["status"]},
        )
    return {"ok": False, "error": run["error"] or {"errorCode": "RUN_CANCELED"}}


def _only(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value[name] for name in names if name in value}
