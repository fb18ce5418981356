"""What the admin shows before a rule is made, changed or retired: what that does, in words, and
what it would have changed; and the policy decision on a call that a person tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from decisions.admin.policy.forms import EVERY_TARGET, scope_label
from decisions.admin.policy.reach_text import listed, sentences_of
from decisions.authorization.call_information import KnownCall
from decisions.authorization.policy import Verdict, current_policy_of
from decisions.authorization.policy_rules import RuleFields, active_rule, draft_rule, scope_callers
from decisions.authorization.rule_history import CallGroup, RuleHistory, history_of
from decisions.authorization.rule_reach import (
    CallChange,
    RuleReach,
    evaluate_known,
    known_calls,
    reach_of,
    released_by,
    released_without,
    stricter_tools,
)
from decisions.foundation.errors import InvalidInput
from decisions.foundation.presentation.html import TONES, code, link_to, pill
from decisions.foundation.presentation.visible_text import visible
from decisions.foundation.validation.json_output import json_digest
from decisions.models import PolicyRule

CALLS_SHOWN = 200
GROUPS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class RuleReview:
    """What a person reads about a rule before making, changing or retiring it.

    Attributes:
        rule: the draft, or the rule to retire.
        reaches: of the draft, and of the rule in force where it decides no longer.
    """

    rule: PolicyRule
    reaches: Sequence[RuleReach]
    history: RuleHistory

    @property
    def sentences(self) -> list[str]:
        """What the rule does, or does no longer, in words."""
        return [text for reach in self.reaches for text in sentences_of(reach)]

    @property
    def not_compared(self) -> str:
        """The tools of which the log does not say whether a call did the same as another."""
        reaches = [reach for reach in self.reaches if reach.alike or reach.stricter]
        names = {one.call.tool for reach in reaches for one in reach.alike}
        names |= {self.rule.tool for reach in reaches if reach.stricter}
        return listed(sorted(names)) if names else ""

    @property
    def is_wide(self) -> bool:
        """Whether the person has to agree to the width."""
        return any(reach.is_wide for reach in self.reaches)

    @property
    def digest(self) -> str:
        """A digest of the rule and of what is said of it, which the person's answer carries."""
        rule = self.rule
        texts = [rule.verdict, rule.scope, rule.scope_id, rule.tool, rule.target_id]
        return json_digest([*texts, rule.reason, self.sentences]).hex()

    def is_agreed(self, answer: Mapping[str, Any]) -> bool:
        """Return whether the person read exactly this and, for a wide rule, agreed to its width."""
        is_same = answer.get("shown") == self.digest
        return is_same and (not self.is_wide or answer.get("understood") == "yes")

    def context(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the context of the page; `answer` is an earlier answer that did not suffice."""
        shown, error = answer.get("shown"), ""
        if shown and shown != self.digest:
            error = _("Rules, targets or tools changed meanwhile. Read again what the rule does.")
        elif shown and self.is_wide:
            error = _("This rule is wide: tick the box to agree to what it does.")
        changes = [
            (change, as_tool)
            for reach in self.reaches
            for found, as_tool in ((reach.changed, ""), (reach.changed_alike, reach.rule.tool))
            for change in found
        ]
        changes.sort(key=lambda one: (one[0].call.target_id, one[0].call.tool, one[1]))
        return {
            "draft": self.rule,
            "verdict": pill(self.rule.verdict, TONES[self.rule.verdict]),
            "target": visible(self.rule.target_id or EVERY_TARGET),
            "scope": scope_label(self.rule),
            "sentences": [visible(one) for one in self.sentences],
            "is_wide": self.is_wide,
            "digest": self.digest,
            "review_error": error,
            "changes": [_change_row(*one) for one in changes[:CALLS_SHOWN]],
            "more_changes": max(0, len(changes) - CALLS_SHOWN),
            "history": self.history,
            "not_compared": self.not_compared,
            "groups": [_group_row(group) for group in self.history.groups[:GROUPS_SHOWN]],
            "more_groups": max(0, len(self.history.groups) - GROUPS_SHOWN),
        }


def review_of(fields: RuleFields, key: str | None) -> RuleReview:
    """Return what to say of a rule, new or the next version of `key`.

    Raises:
        InvalidInput, Conflict, NotFound: As `draft_rule`.
    """
    draft = draft_rule(fields, key=key)
    reaches = [reach_of(draft)]
    if key is not None and not (released := released_by(draft)).is_empty:
        reaches.append(released)
    return RuleReview(draft, reaches, history_of(draft))


def review_of_retirement(key: str) -> RuleReview:
    """Return what to say of a rule that is about to be retired.

    Raises:
        NotFound: No active rule has this key.
    """
    rule = active_rule(key)
    return RuleReview(rule, [released_without(rule)], history_of(rule, is_retired=True))


def _change_row(change: CallChange, as_tool: str) -> dict[str, Any]:
    call = change.call
    tool = visible(call.tool)
    as_text = _("%(tool)s, where it does the same as %(other)s")
    return {
        "tool": as_text % {"tool": tool, "other": visible(as_tool)} if as_tool else tool,
        "target": visible(call.target_name or call.target_id or _("this installation")),
        "before": _decision_pill(change.before),
        "after": _decision_pill(change.after),
    }


def _group_row(group: CallGroup) -> dict[str, Any]:
    return {
        "tool": visible(group.tool),
        "target": visible(group.target_id) or "–",
        "count": group.count,
        "callers": len(group.callers),
        "before": pill(group.before, TONES[group.before]),
        "after": pill(group.after, TONES[group.after]),
        "examples": [link_to("auditentry", str(pk), label=str(pk)) for pk in group.examples],
    }


def tested_call(data: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of a tested call: the decision, and the rule or default that decides.

    Raises:
        InvalidInput: Only runners offer the tool, and the call names none.
    """
    scope, _, scope_id = data["caller"].partition("|")
    policy = current_policy_of(scope_callers(scope, scope_id))
    tool, target = data["tool"].strip(), data["target_id"].strip()
    known = [call for call in known_calls() if call.tool == tool]
    if known and not target and not any(call.is_builtin for call in known):
        raise InvalidInput(f"Only runners offer {visible(tool)}: name the runner as the target.")
    # On a runner, also a tool with the name of a built-in one is the runner's.
    here = (call for call in known if call.is_builtin and call.target_id == target)
    call = replace(next(here, KnownCall(tool, target)), tenant_id="", workspace_id="")
    verdict = evaluate_known(policy, call)
    return {
        "tested": verdict,
        "tested_call": visible(f"{tool} → {target}" if target else tool),
        "tested_pill": _decision_pill(verdict),
        "tested_rule": _rule_link(verdict),
        "is_known": bool(known),
        "tested_alike": [
            {"tool": name, "pill": _decision_pill(one), "rule": _rule_link(one), "verdict": one}
            for name, one in stricter_tools(policy, call).items()
        ],
    }


def _decision_pill(verdict: Verdict) -> Any:
    return pill(verdict.decision, TONES[verdict.decision])


def _rule_link(verdict: Verdict) -> Any:
    """Return a link to the rule that decided, or the name of the default."""
    key, _, version = verdict.rule.partition(" v")
    rule = PolicyRule.objects.filter(key=key, version=int(version or 0)).first()
    return link_to("policyrule", str(rule.pk), label=verdict.rule) if rule else code(verdict.rule)
