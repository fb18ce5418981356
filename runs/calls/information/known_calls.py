"""The calls that policy rules can be about, as far as this installation knows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from decisions.authorization.call_information import KnownCall
from decisions.authorization.policy import PAIRED_BROWSERS, SUBMIT
from decisions.models import PolicyRule
from runners.actions.catalogue import ACTIONS
from runners.actions.judged import always_covered_tools, sometimes_covered_tools
from runners.models import ExecutionTarget, PluginClient, TargetKind
from runners.remote_tools.catalogue import tools_of_runner
from runners.tools.registry import tool_names
from runs.task_templates.registry import list_templates

TARGETS_MAX = 500
# The calls that make no tool call, by the names that rules have for them (docs/confirmations.md).
API_CALLS = (
    "answer_task_run",
    "cancel_task_run",
    "clone_session",
    "close_session",
    "complete_artifact_upload",
    "continuity_chat",
    "continuity_confirm_decision",
    "continuity_put_shell",
    "continuity_put_success_path",
    "continuity_report_outcome",
    "create_session",
    "create_target",
    "create_task",
    "create_webhook",
    "delete_target",
    "delete_webhook",
    "disable_webhook",
    "enable_webhook",
    "pair_browser",
    "probe_target",
    "remove_browser",
    "rename_session",
    "replace_target",
    "replay_webhook_delivery",
    "resume_task",
    "start_artifact_upload",
    "stop_task",
    "take_over_task",
)


def list_known_calls() -> Iterator[KnownCall]:
    """Yield the built-in tools, the other calls of the APIs, the tools on each target, and the
    browser actions in paired browsers: in all of them, and in each.
    """
    for name in (*tool_names(), *API_CALLS):
        yield _built_in(KnownCall(name))
    for template in list_templates():
        yield KnownCall(SUBMIT, template.template_id, is_builtin=True, is_template=True)
    for target in ExecutionTarget.objects.order_by("id")[:TARGETS_MAX]:
        yield from _calls_on(target)
    for name in ACTIONS:
        yield _built_in(KnownCall(name, PAIRED_BROWSERS, "every paired browser"))
    for client in PluginClient.objects.filter(revoked_at__isnull=True).order_by("id")[:TARGETS_MAX]:
        place = client.id, client.name, client.tenant_id, client.workspace_id, client.principal_id
        for name in ACTIONS:
            yield _built_in(KnownCall(name, *place))


def _built_in(call: KnownCall) -> KnownCall:
    covers, may_cover = always_covered_tools(call.tool), sometimes_covered_tools(call.tool)
    return replace(call, is_builtin=True, covers=covers, may_cover=may_cover)


def _calls_on(target: ExecutionTarget) -> Iterator[KnownCall]:
    place = target.id, target.name, target.tenant_id, target.workspace_id or ""
    if target.kind != TargetKind.DOCKER_RUNNER:
        for name in tool_names("workspace"):
            yield _built_in(KnownCall(name, *place))
        return
    named = PolicyRule.objects.filter(target_id=target.id, retired_at__isnull=True)
    offers = tools_of_runner(target, named.exclude(tool="*").values_list("tool", flat=True))
    for offer in offers:
        yield KnownCall(offer["name"], *place)
    if not target.catalogue:
        yield KnownCall("", *place)
