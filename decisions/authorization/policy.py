"""Policy evaluation: allow, deny or confirm, for every tool call before it is made.

A matching rule that denies wins. Else the rule with the narrowest scope (agent, workspace, tenant,
everywhere) wins, within it the narrowest match (tool and target, tool, target, any). Without a
matching rule, high-risk tools need a confirmation, other tools of an execution target are denied,
and built-in tools are allowed.

A call may do what another tool is named for: a `browser_click` that submits a form does what
`submit_form` does. Rules on that tool that deny or require a confirmation restrict the call too;
those that allow loosen nothing but their own tool.

In a browser that a person paired, a rule that allows counts only if it names that browser, or
`plugin` for all of them: one that was made for the worker's browser loosens nothing there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from django.db import connection

from decisions.foundation.infra.preconditions import Precondition
from decisions.models import PolicyRule

PolicyDecision = Literal["allow", "deny", "confirm"]
HIGH_RISK = frozenset({"bash.exec", "http.request", "file.write"})
TARGET_PREFIX = "target_"  # of the ids of execution targets, whose tools are not built in
BROWSER_PREFIX = "plc_"  # of the ids of browsers that people paired
PAIRED_BROWSERS = "plugin"  # the target of rules about all of those
# The actions that change a page: in a paired browser they need a confirmation by default, at
# least the first on each origin (runs.calls.browser_policy).
PAGE_CHANGES = frozenset(
    {
        "browser_click",
        "browser_drag",
        "browser_press_key",
        "browser_select",
        "browser_type",
        "browser_upload",
    }
)
ANY_TOOL = "*"
SUBMIT = "run_task_template"  # the tool name of a submit; its target is the template
_STAMP = "SELECT stamp FROM decisions_policystamp WHERE id = 1"
_STRICTNESS = {"allow": 0, "confirm": 1, "deny": 2}
_BREADTH = {"everywhere": 0, "tenant": 1, "workspace": 2, "agent": 3}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The policy decision on a call, and the rule that decided.

    Attributes:
        rule: the rule's key and version, or the name of the default.
        reason: the reason given in the rule.
    """

    decision: PolicyDecision
    rule: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    """An active rule, prepared for comparison.

    Attributes:
        rank: the higher, the narrower: first the scope, then the match.
    """

    verdict: Verdict
    scope_id: str
    target_id: str
    rank: tuple[int, bool, bool]

    @property
    def allows_anywhere(self) -> bool:
        """Whether it allows calls without naming a target."""
        return self.verdict.decision == "allow" and not self.target_id


@dataclass(frozen=True, slots=True)
class _RuleSet:
    """All active rules, as this process read them under a stamp."""

    stamp: str | None
    by_tool: Mapping[str, list[_Rule]]


class _RuleCache:
    rules = _RuleSet(None, {})


@dataclass(frozen=True, slots=True)
class CallerPolicy:
    """The active rules, for one caller.

    Attributes:
        callers: the scope ids that the caller is in; "" is everywhere.
        stamp: the stamp of these rules, None where no rule was ever created; every change of the
            rules changes it.
    """

    callers: frozenset[str]
    by_tool: Mapping[str, list[_Rule]]
    stamp: str | None = None

    @property
    def precondition(self) -> Precondition:
        """The condition that these still are the active rules."""
        return Precondition(f"COALESCE(({_STAMP}), '') = %s", (self.stamp or "",))

    def evaluate(
        self,
        tool: str,
        target_id: str | None,
        *,
        is_builtin: bool = False,
        default: Verdict | None = None,
        covers: Iterable[str] = (),
    ) -> Verdict:
        """Return the policy decision on one call.

        Args:
            default: the decision if no rule matches; None: by tool and target.
            covers: the other tools that this call does the same as: their rules restrict it.
        """
        verdict = self._own_verdict(tool, target_id, is_builtin=is_builtin, default=default)
        rules = (self._rules_on(target_id, name) for name in sorted(covers))
        others = (_winner(found) for found in rules if found)
        return max((verdict, *others), key=lambda one: _STRICTNESS[one.decision])

    def _own_verdict(
        self, tool: str, target_id: str | None, *, is_builtin: bool, default: Verdict | None
    ) -> Verdict:
        if found := self._rules_on(target_id, tool, ANY_TOOL):
            return _winner(found)
        if default is not None:
            return default
        is_elsewhere = not is_builtin or _is_paired_browser(target_id)
        return _default(tool, target_id if is_elsewhere else None)

    def _rules_on(self, target_id: str | None, *tools: str) -> list[_Rule]:
        """Return the rules on these tools that apply to this caller's calls on a target."""
        targets, is_paired_browser = {"", target_id or ""}, _is_paired_browser(target_id)
        targets |= {PAIRED_BROWSERS} if is_paired_browser else set()
        return [
            rule
            for tool in tools
            for rule in self.by_tool.get(tool, ())
            if rule.scope_id in self.callers
            and rule.target_id in targets
            and not (is_paired_browser and rule.allows_anywhere)
        ]

    def tools_allowed_on(self, target_id: str) -> list[str]:
        """Return the names of the tools that rules on this target allow or have confirmed."""
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


class PolicyCaller(Protocol):
    """A caller, or what is done for one: a call, a run."""

    @property
    def principal_id(self) -> str: ...

    @property
    def tenant_id(self) -> str: ...

    @property
    def workspace_id(self) -> str: ...


def current_policy(caller: PolicyCaller) -> CallerPolicy:
    """Return the current policy for one caller; one small query, whatever the number of rules."""
    return current_policy_of(_scopes_of(caller))


def current_policy_of(callers: frozenset[str]) -> CallerPolicy:
    """Return the current policy for the callers in these scopes, as `CallerPolicy.callers`."""
    rules = _rules()
    return CallerPolicy(callers, rules.by_tool, rules.stamp)


def draft_policy(draft: PolicyRule, callers: frozenset[str]) -> CallerPolicy:
    """Return the policy as it would be with an unsaved rule, which replaces the rule of its key."""
    by_tool = policy_without(draft.key, callers).by_tool
    rules = [*by_tool.get(draft.tool, ()), _prepared(draft)]
    return CallerPolicy(callers, {**by_tool, draft.tool: rules})


def policy_without(key: str, callers: frozenset[str]) -> CallerPolicy:
    """Return the policy as it would be without the rule of this key."""
    by_tool = {
        tool: [rule for rule in rules if not rule.verdict.rule.startswith(f"{key} v")]
        for tool, rules in _rules().by_tool.items()
    }
    return CallerPolicy(callers, by_tool)


def rule_label(rule: PolicyRule) -> str:
    """Return how verdicts and decisions name a version of a rule."""
    return f"{rule.key} v{rule.version}"


def cached_policy(caller: PolicyCaller) -> CallerPolicy:
    """Return the policy that this process cached, for one caller, without a query.

    The statement that starts a call allowed by it must check its `precondition`.
    """
    cached = _RuleCache.rules
    return CallerPolicy(_scopes_of(caller), cached.by_tool, cached.stamp)


def _scopes_of(caller: PolicyCaller) -> frozenset[str]:
    return frozenset({"", caller.tenant_id, caller.workspace_id, caller.principal_id})


def _winner(found: Iterable[_Rule]) -> Verdict:
    return max(found, key=lambda rule: (rule.verdict.decision == "deny", rule.rank)).verdict


def _is_paired_browser(target_id: str | None) -> bool:
    return target_id is not None and (
        target_id == PAIRED_BROWSERS or target_id.startswith(BROWSER_PREFIX)
    )


def _default(tool: str, target_id: str | None) -> Verdict:
    if tool in HIGH_RISK:
        return Verdict("confirm", "default: high risk", f"{tool} is a high-risk tool.")
    if target_id is not None and target_id.startswith(TARGET_PREFIX):
        return Verdict(
            "deny", "default: tools of targets", "No rule allows this tool on this target."
        )
    if tool in PAGE_CHANGES and _is_paired_browser(target_id):
        reason = "The first change on each origin in a paired browser is asked."
        return Verdict("confirm", "default: paired browser", reason)
    return Verdict("allow", "default: own tools")


def _rules() -> _RuleSet:
    """Return the active rules; reads them again when the stamp changed.

    The stamp is read before the rules and written after them, so that cached rules are never older
    than their stamp.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STAMP)
        row = cursor.fetchone()
    stamp = None if row is None else str(row[0])
    cached = _RuleCache.rules
    if cached.stamp != stamp:
        cached = _RuleCache.rules = _RuleSet(stamp, _read_rules() if stamp is not None else {})
    return cached


def _read_rules() -> dict[str, list[_Rule]]:
    by_tool: dict[str, list[_Rule]] = {}
    for row in PolicyRule.objects.filter(retired_at__isnull=True):
        by_tool.setdefault(row.tool, []).append(_prepared(row))
    return by_tool


def _prepared(row: PolicyRule) -> _Rule:
    decision: PolicyDecision = row.verdict  # type: ignore[assignment]  # a CHECK enforces it
    verdict = Verdict(decision, rule_label(row), row.reason)
    # One tool on any target is narrower than any tool on one target.
    rank = (_BREADTH[row.scope], row.tool != ANY_TOOL, row.target_id != "")
    return _Rule(verdict, row.scope_id, row.target_id, rank)
