"""Suggested next calls after an error (`nextActions`), for refusals and for failed runs."""

from __future__ import annotations

from typing import Any

NextAction = dict[str, Any]  # {tool, args, reason}
SEE_TEMPLATE = "Read the template's inputs, then correct the parameter named in the message."


def next_action(tool: str, reason: str, **args: Any) -> NextAction:
    """Return one item of `nextActions`: a tool call and the reason for it."""
    return {"tool": tool, "args": args, "reason": reason}


def next_actions_after(code: str) -> list[NextAction]:
    """Return the suggested calls after an error with this code; empty where none is known."""
    found = _BY_CODE.get(code)
    if found is None:
        return []
    tool, args, reason = found
    return [next_action(tool, reason, **args)]


_TEMPLATES, _RUNS = "list_task_templates", "list_task_runs"
_NEWEST = {"limit": 10}
_BY_CODE: dict[str, tuple[str, dict[str, Any], str]] = {
    "TEMPLATE_NOT_FOUND": (_TEMPLATES, {}, "List the templates."),
    "TEMPLATE_VERSION_UNSUPPORTED": (_TEMPLATES, {}, "List the templates and their versions."),
    "SESSION_NOT_FOUND": (_TEMPLATES, {}, "Find the template that creates a session."),
    "RUN_NOT_FOUND": (_RUNS, _NEWEST, "List the runs, newest first."),
    "ARTIFACT_NOT_FOUND": (_RUNS, _NEWEST, "List the artifactIds of the newest runs."),
    "ARTIFACT_EXPIRED": (_TEMPLATES, {}, "Find the template that created it, then run it again."),
    "TRUST_LEVEL_NOT_ALLOWED": ("get_runtime_profile", {}, "Read the trust level of the calls."),
}
