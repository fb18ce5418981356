"""What a policy rule decides about, before it is made: the known calls that it matches, and how its
decision on them differs from today's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.utils.module_loading import import_string

from decisions.authorization.policy import (
    ANY_TOOL,
    HIGH_RISK,
    TARGET_PREFIX,
    CallerPolicy,
    Verdict,
    current_policy_of,
    draft_policy,
    rule_label,
)
from decisions.authorization.policy_rules import scope_callers
from decisions.models import PolicyRule, RuleScope

_VERBS = {"allow": "allows", "deny": "denies", "confirm": "requires a confirmation for"}
_TODAY = {"deny": "denied", "confirm": "held for a confirmation", "allow": "allowed"}
NAMED = 3  # tools that the summary names


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call that this installation knows: a tool, and a target that it can be called on.

    Attributes:
        tool: the name; empty for a runner that does not say which tools it offers.
        target_id: empty for this installation itself.
        tenant_id, workspace_id: who may use the target; empty for everybody in that.
        is_builtin: Continuity executes the tool itself.
        is_template: the target is a template, as in calls of run_task_template.
    """

    tool: str
    target_id: str = ""
    target_name: str = ""
    tenant_id: str = ""
    workspace_id: str = ""
    is_builtin: bool = False
    is_template: bool = False

    @property
    def runs_on(self) -> str:
        """The id of the target that executes it; empty for this installation."""
        return "" if self.is_template else self.target_id


@dataclass(frozen=True, slots=True)
class CallChange:
    """A known call that a draft rule matches, and the decisions without and with the rule."""

    call: KnownCall
    before: Verdict
    after: Verdict


@dataclass(frozen=True, slots=True)
class RuleReach:
    """The known calls that a draft rule matches.

    Attributes:
        decided: those on which the rule decides; with them the call of a tool that it names on a
            runner that does not say which tools it offers.
        overruled: how many it matches on which another rule decides.
        unlisted: the names of the runners that do not say so, where the rule decides.
        covers_later_targets: it also decides on runners that are added later.
    """

    draft: PolicyRule
    decided: Sequence[CallChange]
    overruled: int
    unlisted: Sequence[str]
    covers_later_targets: bool

    @property
    def changed(self) -> list[CallChange]:
        """The calls on which the decision differs from today's."""
        return [one for one in self.decided if one.before.decision != one.after.decision]

    @property
    def is_wide(self) -> bool:
        """Whether the rule names every tool, or decides about a tool on several targets, those that
        are added later among them.
        """
        targets = {one.call.runs_on for one in self.decided}
        return self.draft.tool == ANY_TOOL or self.covers_later_targets or len(targets) > 1

    def sentences(self) -> list[str]:
        """Say in words what the rule does."""
        if not self.decided and not self.unlisted:
            return self._without_effect()
        found = [self._summary(), self._difference()] if self.decided else []
        if self.unlisted:
            found.append(self._of_unlisted())
        if self.overruled:
            found.append(
                f"On {_count(self.overruled, 'further call')} that it matches, another rule"
                " decides: one that denies, or a narrower one."
            )
        return found

    def _of_unlisted(self) -> str:
        names, silent = _listed(self.unlisted), "do not say which tools they offer"
        if len(self.unlisted) == 1:
            silent = "does not say which tools it offers"
        if self.draft.tool != ANY_TOOL:
            return f"{names} {silent}: the rule decides on {self.draft.tool} if offered there."
        subject = "It also" if self.decided else "This rule"
        return f"{subject} {_VERBS[self.draft.verdict]} every tool of {names}, which {silent}."

    def _summary(self) -> str:
        tools = sorted(
            {one.call.tool for one in self.decided}, key=lambda name: (name not in HIGH_RISK, name)
        )
        targets = {one.call.runs_on for one in self.decided}
        what = f"{_count(len(tools), 'tool')} on {_count(len(targets), 'target')}"
        what += " and every target added later" if self.covers_later_targets else ""
        risky = [name for name in tools if name in HIGH_RISK]
        named = risky or tools[:NAMED]
        link = ", among them " if len(tools) > len(named) else ": "
        names = link + _listed(named) if named else ""
        return f"This rule {_VERBS[self.draft.verdict]} {what}{names}."

    def _difference(self) -> str:
        if not self.changed:
            return "Today the same is decided on all of them."
        counts: Counter[str] = Counter(one.before.decision for one in self.changed)
        parts = [f"{counts[it]} {text}" for it, text in _TODAY.items() if counts[it]]
        same = len(self.decided) - len(self.changed)
        rest = f"; {same} decided the same way as with the rule" if same else ""
        return f"Today, of {_count(len(self.decided), 'such call')}: {_listed(parts)}{rest}."

    def _without_effect(self) -> list[str]:
        why = "No known call matches: check the name of the tool and the target."
        if self.overruled:
            why = "It has no effect now: other rules decide on every call that it matches."
        later = ["It applies to every target added later."] if self.covers_later_targets else []
        return [why, *later]


def known_calls() -> list[KnownCall]:
    """Return the calls that this installation knows (settings.CONTINUITY_KNOWN_CALLS)."""
    list_calls: Callable[[], Iterable[KnownCall]] = import_string(settings.CONTINUITY_KNOWN_CALLS)
    return list(list_calls())


def reach_of(draft: PolicyRule) -> RuleReach:
    """Return the known calls that a draft rule matches.

    Each call is judged for a caller in the rule's scope who may use its target; rules that are
    narrower than both are not considered.
    """
    callers = scope_callers(draft.scope, draft.scope_id)
    today, then = current_policy_of(callers), draft_policy(draft, callers)
    known = known_calls()
    decided, overruled, unlisted = [], 0, set()
    for call, is_listed in _calls_named_by(draft, known):
        if not _matches(draft, call, callers):
            continue
        after = _evaluate(then, call)
        if after.rule != rule_label(draft):
            overruled += 1
            continue
        if not is_listed:
            unlisted.add(call.target_name)
        if call.tool != ANY_TOOL:
            decided.append(CallChange(call, _evaluate(today, call), after))
    later = _covers_later_targets(draft, known, then)
    return RuleReach(draft, decided, overruled, sorted(unlisted), later)


def _calls_named_by(
    draft: PolicyRule, known: Sequence[KnownCall]
) -> Iterator[tuple[KnownCall, bool]]:
    """Yield the calls of the rule's tool, and whether its target is known to offer it. A runner
    that does not say which tools it offers may offer this one; as a call of `*` it stands for all.
    """
    offering = {call.target_id for call in known if call.tool == draft.tool and not call.is_builtin}
    for call in known:
        if call.tool and draft.tool in (ANY_TOOL, call.tool):
            yield call, True
        elif not call.tool and call.target_id not in offering:
            yield replace(call, tool=draft.tool), False


def _covers_later_targets(
    draft: PolicyRule, known: Sequence[KnownCall], then: CallerPolicy
) -> bool:
    """Tell whether a rule for a runner's tool would decide on a runner that is added later."""
    is_builtin = [call.is_builtin for call in known if call.tool == draft.tool]
    if draft.target_id or (is_builtin and all(is_builtin)):
        return False
    later = KnownCall(draft.tool, f"{TARGET_PREFIX}later")
    return _evaluate(then, later).rule == rule_label(draft)


def _matches(draft: PolicyRule, call: KnownCall, callers: frozenset[str]) -> bool:
    if draft.target_id not in ("", call.target_id):
        return False
    if draft.scope == RuleScope.EVERYWHERE:
        return True
    is_visible = not call.tenant_id or call.tenant_id in callers
    in_workspace = not call.workspace_id or call.workspace_id in callers
    return is_visible and (in_workspace or draft.scope == RuleScope.TENANT)


def _evaluate(policy: CallerPolicy, call: KnownCall) -> Verdict:
    policy = replace(policy, callers=policy.callers | {call.tenant_id, call.workspace_id})
    return policy.evaluate(call.tool, call.target_id or None, is_builtin=call.is_builtin)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
