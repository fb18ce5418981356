"""What a task in a paired browser waits for, as the overlay in that browser shows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from decisions.models import Decision
from runners.actions.catalogue import ACTIONS, CLICK, DRAG, PRESS_KEY, SELECT, TYPE, UPLOAD
from runners.paired_browser.protocol.messages import WAIT_CHARS
from runs.models import Run

SUBMITS = " submits"  # the state of an element that submits its form, in its line
_ACTS = {
    UPLOAD.name: "upload",
    CLICK.name: "click",
    TYPE.name: "type",
    PRESS_KEY.name: "key",
    SELECT.name: "select",
    DRAG.name: "drag",
}


def waits_of_tasks(task_ids: Collection[str]) -> dict[str, dict[str, str]]:
    """Return what the runs of tasks wait for from a person, as `waitsFor` of the extension
    protocol, by task; without tasks that wait for no one.
    """
    runs = Run.objects.filter(
        task_id__in=task_ids, ended_at__isnull=True, ready=False, waiting_for__isnull=False
    )
    found = runs.order_by("-created_at", "-id").values_list("task_id", "waiting_for")
    rows = {str(task_id): wait or {} for task_id, wait in found}  # of a task, its oldest run
    asked = [wait["decisionId"] for wait in rows.values() if wait.get("type") == "confirmation"]
    decisions = Decision.objects.only("tool", "arguments").in_bulk(asked)
    waits = {task_id: _wait(wait, decisions) for task_id, wait in rows.items()}
    return {task_id: _cut(wait) for task_id, wait in waits.items() if wait}


def _wait(waiting_for: Mapping[str, Any], decisions: Mapping[int, Decision]) -> dict[str, str]:
    if waiting_for.get("type") == "answer":
        return {"type": "answer", "question": str(waiting_for.get("question", ""))}
    decision = decisions.get(waiting_for.get("decisionId", 0))
    return {} if decision is None else _of_decision(decision)


def _of_decision(decision: Decision) -> dict[str, str]:
    args = decision.arguments if isinstance(decision.arguments, Mapping) else {}
    wait = {"type": "confirmation", "act": _act(decision.tool, args), "tool": decision.tool}
    if decision.tool not in ACTIONS:
        return wait
    host = _host_of(str(args.get("page", "")).rpartition(", ")[2])
    line = str(args.get("element", "")).partition("] ")[2]  # without its number
    element = line.removesuffix(SUBMITS)
    return wait | {name: text for name, text in (("host", host), ("element", element)) if text}


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:  # the arguments of a decision are masked and cut
        return ""


def _act(tool: str, args: Mapping[str, Any]) -> str:
    dialog = args.get("dialog")
    if tool not in ACTIONS:
        return "call"
    if isinstance(dialog, Mapping) and dialog.get("accept"):
        return "dialog"
    if "submits" in args or (tool == TYPE.name and args.get("submit")):
        return "submit"
    return _ACTS.get(tool, "act")


def _cut(wait: Mapping[str, str]) -> dict[str, str]:
    return {name: text[:WAIT_CHARS] for name, text in wait.items()}
