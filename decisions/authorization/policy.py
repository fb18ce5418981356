"""The one gate for deeds: whether a tool call may be done, asked before every call (continuity.md,
"One gate").

Any rule that denies wins; else the narrowest scope (agent, workspace, tenant, everywhere), within
it the narrowest match (target and tool, tool, target, anything). Where no rule matches: the
high-risk set needs a person, other tools of an explicit target are denied, our own are allowed
(mechanisms 13).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from django.db import connection

from decisions.infra.preconditions import Precondition
from decisions.models import PolicyRule

PolicyDecision = Literal["allow", "deny", "confirm"]
HIGH_RISK = frozenset({"bash.exec", "http.request", "file.write"})
TARGET_PREFIX = "target_"  # of ids of execution targets: theirs are not our own tools
ANY_TOOL = "*"
_STAMP = "SELECT stamp FROM decisions_policystamp WHERE id = 1"
_BREADTH = {"everywhere": 0, "tenant": 1, "workspace": 2, "agent": 3}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What policy says of a call, and by which rule.

    Attributes:
        rule: the rule's key and version, or which default it was.
        reason: what whoever made the rule had to say.
    """

    decision: PolicyDecision
    rule: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule in force, ready to be compared.

    Attributes:
        rank: the higher, the narrower: first the scope, then the match.
    """

    verdict: Verdict
    scope_id: str
    target_id: str
    rank: tuple[int, bool, bool]


@dataclass(frozen=True, slots=True)
class _Known:
    """All rules in force, as this process knows them under a stamp."""

    stamp: str | None
    by_tool: Mapping[str, list[_Rule]]


class _Memory:
    known = _Known(None, {})


@dataclass(frozen=True, slots=True)
class CallerPolicy:
    """The rules in force, for one caller.

    Attributes:
        callers: the scopes that the caller is in; "" is everywhere.
        stamp: what they are known under; another means that there are others. None: nobody made
            any yet.
    """

    callers: frozenset[str]
    by_tool: Mapping[str, list[_Rule]]
    stamp: str | None = None

    @property
    def precondition(self) -> Precondition:
        """That these still are the rules in force (in SQL of PostgreSQL)."""
        return Precondition(f"({_STAMP}) IS NOT DISTINCT FROM %s", (self.stamp,))

    def evaluate(self, tool: str, target_id: str | None, *, is_builtin: bool = False) -> Verdict:
        """Return the verdict on one call."""
        if self.by_tool:
            targets = {"", target_id or ""}
            found = [
                rule
                for rule in (*self.by_tool.get(tool, ()), *self.by_tool.get(ANY_TOOL, ()))
                if rule.scope_id in self.callers and rule.target_id in targets
            ]
            if found:
                return _winner(found)
        return _default(tool, None if is_builtin else target_id)

    def tools_allowed_on(self, target_id: str) -> list[str]:
        """Return the tools that rules let the caller call on just this target, by name."""
        return sorted(
            tool
            for tool, rules in self.by_tool.items()
            if tool != ANY_TOOL
            and any(
                rule.target_id == target_id
                and rule.scope_id in self.callers
                and rule.verdict.decision != "deny"
                for rule in rules
            )
        )


def evaluate(
    *,
    principal_id: str,
    tenant_id: str,
    workspace_id: str,
    tool: str,
    target_id: str | None = None,
    is_builtin: bool = False,
) -> Verdict:
    """Return the verdict on one call, before it is made; one small query, whatever the number of
    rules.

    `is_own`: the tool is one of ours, also where it works on a target: a folder, say.
    """
    callers = frozenset({"", tenant_id, workspace_id, principal_id})
    return CallerPolicy(callers, _rules()).evaluate(tool, target_id, is_builtin=is_builtin)


def current_policy(*, principal_id: str, tenant_id: str, workspace_id: str) -> CallerPolicy:
    """Return policy as it is now for one caller: for showing what it would say of many calls. Each
    call that is made asks `judge` itself.
    """
    callers = frozenset({"", tenant_id, workspace_id, principal_id})
    return CallerPolicy(callers, _rules())


def cached_policy(*, principal_id: str, tenant_id: str, workspace_id: str) -> CallerPolicy:
    """Return policy as this process read it last, for one caller, without a query: whoever lets a
    call pass by it tests `still_so` in the statement that begins the call.
    """
    callers = frozenset({"", tenant_id, workspace_id, principal_id})
    known = _Memory.known
    return CallerPolicy(callers, known.by_tool, known.stamp)


def _winner(found: Iterable[_Rule]) -> Verdict:
    return max(found, key=lambda rule: (rule.verdict.decision == "deny", rule.rank)).verdict


def _default(tool: str, target_id: str | None) -> Verdict:
    if tool in HIGH_RISK:
        return Verdict("confirm", "default: high risk", f"{tool} is a high-risk tool.")
    if target_id is not None and target_id.startswith(TARGET_PREFIX):
        return Verdict(
            "deny", "default: tools of targets", "No rule allows this tool on this target."
        )
    return Verdict("allow", "default: own tools")


def _rules() -> Mapping[str, list[_Rule]]:
    """Return the rules in force by tool; read anew when the stamp is another.

    The stamp is read before the rules, and written after them: what is known under a stamp is never
    older than the stamp.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STAMP)
        row = cursor.fetchone()
    stamp = None if row is None else str(row[0])
    known = _Memory.known
    if known.stamp != stamp:
        known = _Memory.known = _Known(stamp, _read() if stamp is not None else {})
    return known.by_tool


def _read() -> dict[str, list[_Rule]]:
    by_tool: dict[str, list[_Rule]] = {}
    for row in PolicyRule.objects.filter(retired_at__isnull=True):
        decided: PolicyDecision = row.verdict  # type: ignore[assignment]  # a CHECK sees to it
        verdict = Verdict(decided, f"{row.key} v{row.version}", row.reason)
        # One tool on any target is narrower than any tool on one target.
        rank = (_BREADTH[row.scope], row.tool != ANY_TOOL, row.target_id != "")
        by_tool.setdefault(row.tool, []).append(_Rule(verdict, row.scope_id, row.target_id, rank))
    return by_tool
