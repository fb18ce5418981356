"""What a policy rule decides about, before it is made, changed or retired: the known calls that it
matches, and how the decision on them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from decisions.authorization.call_information import KnownCall
from decisions.authorization.policy import (
    ANY_TOOL,
    BROWSER_PREFIX,
    PAIRED_BROWSERS,
    TARGET_PREFIX,
    CallerPolicy,
    Verdict,
    current_policy_of,
    draft_policy,
    policy_without,
    rule_label,
)
from decisions.authorization.policy_rules import active_rule, scope_callers
from decisions.models import PolicyRule, RuleScope, RuleVerdict
from decisions.signals import call_information


@dataclass(frozen=True, slots=True)
class CallChange:
    """A known call that a rule matches, and the decisions before and after the rule is made,
    changed or retired.
    """

    call: KnownCall
    before: Verdict
    after: Verdict

    @property
    def is_otherwise(self) -> bool:
        """Whether the decision changes."""
        return self.before.decision != self.after.decision


@dataclass(frozen=True, slots=True)
class RuleReach:
    """The known calls on which a rule will decide, or on which it will decide no longer.

    Attributes:
        rule: the unsaved rule; with `ends`, the one in force.
        ends: these are the calls on which the rule decides no longer.
        decided: the calls; with them that of a tool that the rule names on a runner that does not
            say which tools it offers.
        overruled: how many it matches on which another rule decides.
        unlisted: the names of the runners that do not say so, where the rule decides.
        covers_later_targets: it also decides on runners that are added later.
        alike: calls of other tools, decided by it where they do the same as its tool.
        stricter: tools whose rules decide instead where one of `decided` does the same as them.
    """

    rule: PolicyRule
    ends: bool
    decided: Sequence[CallChange]
    overruled: int
    unlisted: Sequence[str]
    covers_later_targets: bool
    alike: Sequence[CallChange] = ()
    stricter: Sequence[str] = ()

    @property
    def changed(self) -> list[CallChange]:
        """The calls on which the decision changes."""
        return [one for one in self.decided if one.is_otherwise]

    @property
    def changed_alike(self) -> list[CallChange]:
        """The calls of other tools on which the decision changes where they do the same."""
        return [one for one in self.alike if one.is_otherwise]

    @property
    def is_wide(self) -> bool:
        """Whether the rule names every tool, or decides about a tool on several targets, those that
        are added later among them.
        """
        targets = {one.call.runs_on for one in (*self.decided, *self.alike)}
        return self.rule.tool == ANY_TOOL or self.covers_later_targets or len(targets) > 1

    @property
    def is_empty(self) -> bool:
        """Whether the rule decides on no call, known or later."""
        return not (self.decided or self.unlisted or self.covers_later_targets or self.alike)


def known_calls() -> list[KnownCall]:
    """Return the calls that this installation knows."""
    return list(call_information().list_known_calls())


def reach_of(draft: PolicyRule) -> RuleReach:
    """Return the known calls on which a draft rule would decide.

    Each call is judged for a caller in the rule's scope who may use its target; rules that are
    narrower than both are not considered.
    """
    callers = scope_callers(draft.scope, draft.scope_id)
    policies = current_policy_of(callers), draft_policy(draft, callers)
    return _reach(draft, policies, lambda one: one.after.rule == rule_label(draft))


def released_by(draft: PolicyRule) -> RuleReach:
    """Return the known calls on which the rule in force decides, and its draft of the next version
    does not. As `reach_of`.

    Raises:
        NotFound: No active rule has the draft's key.
    """
    rule = active_rule(draft.key)
    callers = scope_callers(rule.scope, rule.scope_id)
    return _release(rule, draft_policy(draft, callers), rule_label(draft))


def released_without(rule: PolicyRule) -> RuleReach:
    """Return the known calls on which a rule in force decides. As `reach_of`."""
    return _release(rule, policy_without(rule.key, scope_callers(rule.scope, rule.scope_id)))


def _release(rule: PolicyRule, after: CallerPolicy, next_version: str = "") -> RuleReach:
    def ends(change: CallChange) -> bool:
        return change.before.rule == rule_label(rule) and change.after.rule != next_version

    return _reach(rule, (current_policy_of(after.callers), after), ends, ends=True)


def _reach(
    rule: PolicyRule,
    policies: tuple[CallerPolicy, CallerPolicy],
    is_decided: Callable[[CallChange], bool],
    *,
    ends: bool = False,
) -> RuleReach:
    def change_of(call: KnownCall, *covers: str) -> CallChange:
        before, after = (evaluate_known(policy, call, *covers) for policy in policies)
        return CallChange(call, before, after)

    known = known_calls()
    decided, overruled, unlisted = [], 0, set()
    for call, is_listed in _calls_named_by(rule, known):
        if not _matches(rule, call, policies[0].callers):
            continue
        change = change_of(call)
        if not is_decided(change):
            overruled += 1
            continue
        if not is_listed:
            unlisted.add(call.target_name)
        if call.tool != ANY_TOOL:
            decided.append(change)
    later = change_of(KnownCall(rule.tool, f"{TARGET_PREFIX}later"))
    covers_later = _names_runners_tool(rule, known) and is_decided(later)
    others = (one for one in known if rule.tool in one.covers | one.may_cover)
    matching = (one for one in others if _matches(rule, one, policies[0].callers))
    alike = [it for one in matching if is_decided(it := change_of(one, rule.tool))]
    strict = {name for one in decided for name in stricter_tools(policies[1], one.call)}
    return RuleReach(
        rule, ends, decided, overruled, sorted(unlisted), covers_later, alike, sorted(strict)
    )


def stricter_tools(policy: CallerPolicy, call: KnownCall) -> dict[str, Verdict]:
    """Return the tools whose rules decide more strictly where a call does the same as them, and
    what they decide.
    """
    own = evaluate_known(policy, call).decision
    found = {name: evaluate_known(policy, call, name) for name in sorted(call.may_cover)}
    return {name: verdict for name, verdict in found.items() if verdict.decision != own}


def _calls_named_by(
    rule: PolicyRule, known: Sequence[KnownCall]
) -> Iterator[tuple[KnownCall, bool]]:
    """Yield the calls of the rule's tool, and whether its target is known to offer it. A runner
    that does not say which tools it offers may offer this one; as a call of `*` it stands for all.
    """
    offering = {call.target_id for call in known if call.tool == rule.tool and not call.is_builtin}
    for call in known:
        if call.tool and rule.tool in (ANY_TOOL, call.tool):
            yield call, True
        elif not call.tool and call.target_id not in offering:
            yield replace(call, tool=rule.tool), False


def _names_runners_tool(rule: PolicyRule, known: Sequence[KnownCall]) -> bool:
    """Return whether a rule is about a tool of runners, on every target."""
    is_builtin = [call.is_builtin for call in known if call.tool == rule.tool]
    return not rule.target_id and not (is_builtin and all(is_builtin))


def _matches(rule: PolicyRule, call: KnownCall, callers: frozenset[str]) -> bool:
    if not _names_target(rule, call):
        return False
    if rule.scope == RuleScope.EVERYWHERE:
        return True
    if rule.scope == RuleScope.AGENT and call.principal_id not in ("", rule.scope_id):
        return False
    is_visible = not call.tenant_id or call.tenant_id in callers
    in_workspace = not call.workspace_id or call.workspace_id in callers
    return is_visible and (in_workspace or rule.scope == RuleScope.TENANT)


def _names_target(rule: PolicyRule, call: KnownCall) -> bool:
    """Return whether a rule can decide on a call's target. `plugin` stands for all paired browsers;
    a single one counts only if the rule names it.
    """
    if call.target_id.startswith(BROWSER_PREFIX):
        return rule.target_id == call.target_id
    if call.target_id == PAIRED_BROWSERS and not rule.target_id:
        return rule.verdict != RuleVerdict.ALLOW
    return rule.target_id in ("", call.target_id)


def evaluate_known(policy: CallerPolicy, call: KnownCall, *covers: str) -> Verdict:
    """Return how a policy decides on a known call, of a caller who may use its target.

    Args:
        covers: tools of `may_cover` that the call does the same as.
    """
    return replace(policy, callers=policy.callers | {call.tenant_id, call.workspace_id}).evaluate(
        call.tool,
        call.target_id or None,
        is_builtin=call.is_builtin,
        covers=call.covers.union(covers),
    )
