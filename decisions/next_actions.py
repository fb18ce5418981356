"""The calls that help after an error, each ready to be made: for refusals and for runs alike."""

from __future__ import annotations

from typing import Any

NextAction = dict[str, Any]  # {tool, args, reason}
SEE_TEMPLATE = "See what the template takes, then correct the parameter named in the message."


def next_action(tool: str, reason: str, **args: Any) -> NextAction:
    """Return a call as `nextActions` shows it (runs.md)."""
    return {"tool": tool, "args": args, "reason": reason}


def next_actions_after(code: str) -> list[NextAction]:
    """Return the call that helps whatever it was that met this code; none where there is none."""
    found = _BY_CODE.get(code)
    return [] if found is None else [next_action(found[0], found[2], **found[1])]


_TEMPLATES, _RUNS = "list_task_templates", "list_task_runs"
_NEWEST = {"limit": 10}
_BY_CODE: dict[str, tuple[str, dict[str, Any], str]] = {
    "TEMPLATE_NOT_FOUND": (_TEMPLATES, {}, "See which templates there are."),
    "TEMPLATE_VERSION_UNSUPPORTED": (_TEMPLATES, {}, "See in which version the template is here."),
    "SESSION_NOT_FOUND": (_TEMPLATES, {}, "See the template that makes a session anew."),
    "RUN_NOT_FOUND": (_RUNS, _NEWEST, "See which runs there are, the newest first."),
    "ARTIFACT_NOT_FOUND": (_RUNS, _NEWEST, "See the artifactIds of the newest runs."),
    "ARTIFACT_EXPIRED": (_TEMPLATES, {}, "Find the template that made it, then run it again."),
    "TRUST_LEVEL_NOT_ALLOWED": ("get_runtime_profile", {}, "See which trust level the calls have."),
}
