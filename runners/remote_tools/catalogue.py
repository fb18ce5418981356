"""The tools that a caller's runners offer, merged by name: those in each target's config, those
that the runner published, and those that policy rules name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import F

from decisions.authorization.policy import HIGH_RISK, CallerPolicy, Verdict, current_policy
from runners.models import ExecutionTarget, TargetKind
from runners.targets.published_tools import ToolOffer, any_object, configured_tools
from runners.targets.targets import Caller, preferred_target, visible_targets

_COLUMNS = ("id", "name", "workspace_id", "is_default", "enabled", "config", "catalogue")


@dataclass(frozen=True, slots=True)
class ToolOnRunner:
    """A runner that offers a tool.

    Attributes:
        verdict: the current policy decision for the caller's call.
        is_taken: calls that name no target go to this runner.
    """

    target_id: str
    target_name: str
    is_default: bool
    enabled: bool
    verdict: Verdict
    is_taken: bool


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that one or more runners offer, the default runner first.

    Attributes:
        input_schema: the schema, if all runners publish the same one; else any object.
        risk: low, medium or high; high if unknown.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    risk: str
    targets: tuple[ToolOnRunner, ...]


def list_offered(caller: Caller) -> list[OfferedTool]:
    """Return the tools that the caller's runners offer, sorted by name. One or two queries."""
    rows = visible_targets(caller).filter(kind=TargetKind.DOCKER_RUNNER).only(*_COLUMNS)
    runners = list(
        rows.order_by("-is_default", F("workspace_id").asc(nulls_last=True), "name", "id")
    )
    if not runners:
        return []
    policy = current_policy(caller)
    taken = preferred_target(caller, runners)
    by_name: dict[str, list[tuple[ToolOffer, ToolOnRunner]]] = {}
    for runner in runners:
        for offer in tools_of_runner(runner, policy.tools_allowed_on(runner.id)):
            on = _on(runner, policy, offer["name"], is_taken=runner == taken)
            by_name.setdefault(offer["name"], []).append((offer, on))
    return [_merged(name, by_name[name]) for name in sorted(by_name)]


def tools_of_runner(runner: ExecutionTarget, named: Iterable[str] = ()) -> list[ToolOffer]:
    """Return the tools of a runner: its config precedes what it published, and that precedes tools
    known only from policy rules.
    """
    bare = [{"name": name, "description": "", "inputSchema": any_object()} for name in named]
    found: dict[str, ToolOffer] = {}
    for offer in (*configured_tools(runner.config), *runner.catalogue, *bare):
        found.setdefault(offer["name"], offer)
    return list(found.values())


def _on(
    runner: ExecutionTarget, policy: CallerPolicy, tool: str, *, is_taken: bool
) -> ToolOnRunner:
    return ToolOnRunner(
        target_id=runner.id,
        target_name=runner.name,
        is_default=runner.is_default,
        enabled=runner.enabled,
        verdict=policy.evaluate(tool, runner.id),
        is_taken=is_taken,
    )


def _merged(name: str, offers: list[tuple[ToolOffer, ToolOnRunner]]) -> OfferedTool:
    published = [offer for offer, _ in offers]
    schema = published[0]["inputSchema"]
    risks = {offer.get("risk", "high") for offer in published}
    same_risk = risks.pop() if len(risks) == 1 and name not in HIGH_RISK else "high"
    return OfferedTool(
        name=name,
        description=next((offer["description"] for offer in published if offer["description"]), ""),
        input_schema=schema
        if all(one["inputSchema"] == schema for one in published)
        else any_object(),
        risk=same_risk,
        targets=tuple(on for _, on in offers),
    )
