"""What stands beside the arguments of a call that a person decides on: the run with its goal and
steps so far, the caller, the tool's effect, the command line or the diff of what it would do.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from pydantic import ValidationError

from decisions.authorization.call_information import CallContext, CallPreview
from decisions.authorization.sealed_arguments import CannotBeShown, open_arguments
from decisions.foundation.errors import Refused
from decisions.models import Decision
from runners.actions.typed_text import hide_typed_text
from runners.errors import ToolFailed
from runners.models import ExecutionTarget, TargetKind
from runners.targets.snapshots import compare_with_now
from runners.targets.targets import Caller
from runners.targets.workspaces import find_target, open_target
from runners.tools.base import Effect, Tool
from runners.tools.registry import get_tool
from runners.trust_level import TrustLevel
from runners.workspace.scripts.package_scripts import find_script, scripts_digest
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.crash_recovery import content_digest
from runners.workspace.writing.proposed_change import proposed_diff, read_current, unified_diff
from runners.workspace.writing.snapshots import read_snapshot, snapshot_digest
from runs.models import DEVELOPER_TARGET, Run, RunStep
from runs.queries.request_previews import (
    basis_of_request,
    caller_name,
    is_request,
    previews_of_request,
)
from runs.task_templates.registry import get_template

STEPS = 10  # of the run's steps before the call
DIFF_MAX = 262_144  # characters
_DIFF_S = 2.0
UNREADABLE = "unreadable"  # basis of a call that would fail or cannot be read; equals no digest
_EFFECTS = {
    Effect.READ: gettext_noop("reads only"),
    Effect.AT_LEAST_ONCE: gettext_noop("changes something; may be repeated after a crash"),
    Effect.ONCE: gettext_noop("changes something, once; a crash never repeats it"),
}
_Texts = list[tuple[str, str]]
_Args = Mapping[str, Any]


def context_of_decision(decision: Decision) -> CallContext:
    """Return the context of a decision on a message or a tool call; of what it has
    only typed text is masked.
    """
    run = Run.objects.filter(id=decision.run_id).first() if decision.run_id else None
    facts = [(_("Caller"), _caller(decision)), *_run_facts(decision, run)]
    steps = _steps_before(decision)
    if not decision.tool:
        return CallContext(facts, steps)
    row = ExecutionTarget.objects.filter(id=decision.target_id or "").first()
    facts += _tool_facts(decision, row)
    try:
        args = open_arguments(decision)
        previews = list(_previews(decision, run, row, args))
        return CallContext(facts, steps, previews, previews[0].basis if previews else None)
    except CannotBeShown:
        return CallContext(facts, steps)
    except (Refused, ToolFailed) as failed:
        facts.append((_("What it would do now"), failed.message))
        return CallContext(facts, steps, basis=basis_of_decision(decision))


def basis_of_decision(decision: Decision) -> str | None:
    """Return the digest of what the preview of a call is computed from now: the script with those
    that run before and after it, the content of the file or snapshot, or the rows of a request.
    None for a call without such a preview, `UNREADABLE` if the call's arguments cannot be read.
    """
    if decision.tool not in _BASES and not is_request(decision):
        return None
    run = Run.objects.filter(id=decision.run_id).first() if decision.run_id else None
    row = ExecutionTarget.objects.filter(id=decision.target_id or "").first()
    tool = _local_tool(decision, row)
    if tool is None and not is_request(decision):
        return None
    try:
        args = open_arguments(decision)
        if tool is None or is_request(decision):
            return basis_of_request(decision.tool, args)
        if not _is_valid(tool, args):
            return None
        return _BASES[tool.name](_workspace(decision, run, tool), args)
    except (CannotBeShown, Refused, ToolFailed):
        return UNREADABLE


def _caller(decision: Decision) -> str:
    caller = caller_name(decision.principal_id)
    if not decision.user_id:
        return caller
    return _("%(caller)s for %(user)s") % {"caller": caller, "user": decision.user_id}


def _run_facts(decision: Decision, run: Run | None) -> _Texts:
    if run is None:
        return []
    template = get_template(run.template_id)
    about = _("%(name)s, %(id)s, step %(step)s of %(total)s") % {
        "name": _(template.name) if template else run.template_id,
        "id": run.id,
        "step": (decision.step_index or 0) + 1,
        "total": run.total_steps,
    }
    facts = [(_("Run"), about)]
    goal = run.inputs.get("goal")
    if isinstance(goal, str):
        return [*facts, (_("Goal"), goal)]
    inputs = hide_typed_text(run.inputs)  # the typed text is an argument of the call
    return [*facts, (_("Inputs of the run"), json.dumps(inputs, ensure_ascii=False))]


def _steps_before(decision: Decision) -> list[str]:
    if not decision.run_id:
        return []
    rows = RunStep.objects.filter(run_id=decision.run_id, index__lt=decision.step_index or 0)
    newest = rows.order_by("-index").values_list("index", "name", "status")[:STEPS]
    return [f"{index + 1}. {name}: {_(status)}" for index, name, status in reversed(list(newest))]


def _tool_facts(decision: Decision, row: ExecutionTarget | None) -> _Texts:
    tool = _local_tool(decision, row)
    if tool is not None:
        effect = _(_EFFECTS[tool.effect])
    elif row is not None and row.kind == TargetKind.DOCKER_RUNNER:
        effect = _("performed by the runner, once; what it changes is not known here")
    else:
        effect = _("a request that changes something in Continuity")
    facts = [(_("Effect"), effect)]
    if row is not None:
        about = f"{row.kind}, {row.endpoint}" if row.endpoint else row.kind
        facts.insert(0, (_("Target"), f"{row.name} ({about})"))
    return facts


def _local_tool(decision: Decision, row: ExecutionTarget | None) -> Tool | None:
    is_remote = row is not None and row.kind == TargetKind.DOCKER_RUNNER
    return None if is_remote else get_tool(decision.tool)


def _previews(
    decision: Decision, run: Run | None, row: ExecutionTarget | None, args: _Args
) -> Iterator[CallPreview]:
    if is_request(decision):
        yield from previews_of_request(decision.tool, args)
        return
    tool = _local_tool(decision, row)
    if tool is None:
        if decision.tool == "bash.exec":
            yield from _command_line(args)
        return
    preview_of = _PREVIEWS.get(tool.name)
    if preview_of is None:
        return
    if not _is_valid(tool, args):  # the call will fail
        return
    yield from preview_of(tool, _workspace(decision, run, tool), args)


def _is_valid(tool: Tool, args: _Args) -> bool:
    try:
        tool.input_model.model_validate(args)
    except ValidationError:
        return False
    return True


def _command_line(args: _Args) -> Iterator[CallPreview]:
    """Yield the program that the reference runner starts, with its environment and its folder."""
    env, line = args.get("env") or {}, args.get("cmd")
    if not isinstance(line, str) or not isinstance(env, Mapping):
        return
    set_env = [f"{name}={value}" for name, value in env.items()]
    argv = [*(["env", *set_env] if set_env else []), "bash", "-c", line]
    about = _("in the folder %(folder)s of the runner") % {"folder": args.get("cwd", ".")}
    yield CallPreview(_("Command line"), shlex.join(argv), about)


def _script(
    tool: Tool, workspace: ProjectWorkspace, args: Mapping[str, Any]
) -> Iterator[CallPreview]:
    name, more = args["scriptName"], args.get("args", [])
    scripts = find_script(workspace, name)
    lines = [shlex.join(one.argv(more if one.event == name else [])) for one in scripts]
    about, basis = _("as package.json has it now"), scripts_digest(scripts)
    yield CallPreview(_("Command line"), "\n".join(lines), about, basis=basis)


def _diff(
    tool: Tool, workspace: ProjectWorkspace, args: Mapping[str, Any]
) -> Iterator[CallPreview]:
    deadline = time.monotonic() + _DIFF_S
    change = proposed_diff(workspace, tool.name, args, deadline=deadline)
    text = change.diff
    about = _("against the file as it is now") if text else _("the file would not change")
    if len(text) > DIFF_MAX:
        about = _("%(length)s characters, more than %(most)s: not shown")
        about, text = about % {"length": len(text), "most": DIFF_MAX}, ""
    if args.get("dryRun") is True:
        about = _("%(about)s; this call writes nothing (dryRun)") % {"about": about}
    yield CallPreview(_("Diff"), text, about, is_diff=True, basis=change.basis)


def _snapshot(tool: Tool, workspace: ProjectWorkspace, args: _Args) -> Iterator[CallPreview]:
    """Yield the snapshot that the call returns, and what writing it back would change."""
    compared = compare_with_now(workspace, args["snapshotId"])
    snapshot, then, now = compared.snapshot, compared.then, compared.now
    at = datetime.fromtimestamp(snapshot.timestamp / 1000, UTC).isoformat(timespec="seconds")
    size, digest = _size(then), hashlib.sha256(then.encode()).hexdigest()
    lines = [
        (_("file: %(path)s") if snapshot.existed else _("file: %(path)s (did not exist)"))
        % {"path": snapshot.path},
        _("taken at: %(at)s") % {"at": at},
        _("size: %(size)s") % {"size": size},
        f"sha256: {digest}",
    ]
    about = _("the call returns this content and changes nothing")
    basis = snapshot_digest(snapshot, then)
    yield CallPreview(_("Snapshot"), "\n".join(lines), about, basis=basis)
    is_added = now is None and not compared.error
    sizes = _("%(before)s to %(after)s") % {"before": _size(now), "after": size}
    added = f"1 {snapshot.path} ({size})" if is_added else "0"
    replaced = f"1 {snapshot.path} ({sizes})" if now not in (None, then) else "0"
    counts = [
        _("files added: %(files)s") % {"files": added},
        _("files replaced: %(files)s") % {"files": replaced},
        _("files removed: %(files)s") % {"files": 0},
    ]
    if compared.error:
        counts = [_("the file cannot be compared: %(why)s") % {"why": compared.error}]
    yield CallPreview(_("If it is written back"), "\n".join(counts), _("as the file is now"))
    diff = "" if compared.error else unified_diff(snapshot.path, now, then)
    if diff and len(diff) <= DIFF_MAX:
        about = _("against the file as it is")
        yield CallPreview(_("Diff"), diff, about, is_diff=True)


def _size(text: str | None) -> str:
    return _("%(size)s bytes") % {"size": len((text or "").encode())}


_PREVIEWS: Mapping[str, Callable[[Tool, ProjectWorkspace, _Args], Iterator[CallPreview]]] = {
    "restore_snapshot": _snapshot,
    "execute_command": _script,
    "write_to_file": _diff,
    "replace_in_file": _diff,
}


def _script_basis(workspace: ProjectWorkspace, args: _Args) -> str:
    return scripts_digest(find_script(workspace, args["scriptName"]))


def _file_basis(workspace: ProjectWorkspace, args: _Args) -> str:
    return content_digest(read_current(workspace, args["path"]))


def _snapshot_basis(workspace: ProjectWorkspace, args: _Args) -> str:
    forbidden = workspace.policy.forbidden
    found = read_snapshot(workspace.state, args["snapshotId"], forbidden=forbidden)
    return snapshot_digest(*found)


_BASES: Mapping[str, Callable[[ProjectWorkspace, _Args], str]] = {
    "restore_snapshot": _snapshot_basis,
    "execute_command": _script_basis,
    "write_to_file": _file_basis,
    "replace_in_file": _file_basis,
}


def _workspace(decision: Decision, run: Run | None, tool: Tool) -> ProjectWorkspace:
    trust: TrustLevel = "remote" if run is not None and run.trust != "local" else "local"
    caller = Caller(decision.principal_id, decision.tenant_id, decision.workspace_id, trust)
    developer = None if run is None else run.options.get(DEVELOPER_TARGET)
    target = find_target(caller, decision.target_id)
    return open_target(caller, target, offered=None, developer_target=developer, tool=tool.name)
