"""What a policy rule, or its end, would have changed: the calls of the last days, as the audit log
has them, that would have been decided otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from decisions.audit.query import filter_by_time, filter_by_tool
from decisions.audit.record import is_genuine
from decisions.authorization.call_information import KnownCall
from decisions.authorization.policy import (
    ANY_TOOL,
    SUBMIT,
    CallerPolicy,
    Verdict,
    current_policy_of,
    draft_policy,
    policy_without,
    rule_label,
)
from decisions.authorization.rule_reach import evaluate_known, known_calls
from decisions.identity.principals import ADMIN
from decisions.models import AuditEntry, Decision, PolicyRule, RuleScope

SPAN = timedelta(days=7)
ROWS = 5000  # audit rows that are read of each action, the newest
EXAMPLES = 3
_ALL: frozenset[str] = frozenset()  # `verdict_of` sets the callers
# The audit actions that record how policy decided on a call.
_DECIDED = {
    "tool.called": "allow",
    "run.submitted": "allow",
    "policy.denied": "deny",
    "confirmation.opened": "confirm",
}


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call in the audit log, and how it was decided.

    Attributes:
        ruled_as: the tool of the rule that decided; another one than the call's where the call did
            the same as that.
    """

    entry_id: int
    at: datetime
    actor: str
    tenant_id: str
    workspace_id: str
    tool: str
    target_id: str
    decision: str
    ruled_as: str = ""

    def verdict_of(
        self, policy: CallerPolicy, known: Mapping[tuple[str, str], KnownCall]
    ) -> Verdict:
        """Return how a policy decides on this call of this caller."""
        callers = frozenset({"", self.tenant_id, self.workspace_id, self.actor})
        place = self.tool, self.target_id
        call = replace(known.get(place, KnownCall(*place)), tenant_id="", workspace_id="")
        covers = call.may_cover & {self.ruled_as}
        return evaluate_known(replace(policy, callers=callers), call, *covers)


@dataclass(slots=True)
class CallGroup:
    """The calls of a tool on a target that were decided one way and would have been another way.

    Attributes:
        examples: ids of audit rows, the newest first.
    """

    tool: str
    target_id: str
    before: str
    after: str
    count: int = 0
    callers: set[str] = field(default_factory=set)
    examples: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RuleHistory:
    """What a rule, or its end, would have changed.

    Attributes:
        groups: the calls that would have been decided otherwise, the most frequent first.
        examined: how many recorded calls were compared.
        since: from when on the log was read; later than SPAN ago where it has too many rows.
        is_cut: there are older rows within SPAN that were not read.
        skipped: how many rows were not compared because their MAC is wrong.
    """

    groups: list[CallGroup]
    examined: int
    since: datetime
    is_cut: bool
    skipped: int

    @property
    def count(self) -> int:
        """How many calls would have been decided otherwise."""
        return sum(group.count for group in self.groups)


def history_of(rule: PolicyRule, *, is_retired: bool = False) -> RuleHistory:
    """Return what a draft rule would have changed in the last SPAN, or with `is_retired` what the
    end of a rule in force would have. Reads at most ROWS audit rows of each action.

    Rules that were in force at the time but are not any more are not considered.
    """
    since = datetime.now(UTC) - SPAN
    recorded, read_since, skipped = _recorded_calls(rule, since)
    groups: dict[tuple[str, str, str, str], CallGroup] = {}
    after = policy_without(rule.key, _ALL) if is_retired else draft_policy(rule, _ALL)
    decides = current_policy_of(_ALL) if is_retired else after  # where the rule is in force
    known = {(call.tool, call.target_id): call for call in known_calls() if call.is_builtin}
    for call in recorded:
        if call.verdict_of(decides, known).rule != rule_label(rule):
            continue
        verdict = call.verdict_of(after, known)
        if verdict.decision == call.decision:
            continue
        if verdict.decision == "confirm" and call.actor.startswith(ADMIN):
            continue  # a person who may confirm needs no second one
        key = call.tool, call.target_id, call.decision, verdict.decision
        group = groups.setdefault(key, CallGroup(*key))
        group.count += 1
        group.callers.add(call.actor)
        if len(group.examples) < EXAMPLES:
            group.examples.append(call.entry_id)
    found = sorted(groups.values(), key=lambda group: (-group.count, group.tool, group.target_id))
    return RuleHistory(found, len(recorded), read_since, read_since > since, skipped)


def _recorded_calls(rule: PolicyRule, since: datetime) -> tuple[list[RecordedCall], datetime, int]:
    """Return the calls that the rule's tool and scope match, newest first, from when on, and how
    many rows were skipped.
    """
    read_since, skipped = since, 0
    found: list[RecordedCall] = []
    confirmed: set[tuple[str, str]] = set()
    for action in ("confirmation.opened", "policy.denied", "tool.called", "run.submitted"):
        read = list(_rows(rule, action, since)[: ROWS + 1])
        rows = [row for row in read[:ROWS] if is_genuine(row)]  # others can have values of any type
        skipped += len(read[:ROWS]) - len(rows)
        if rows and len(read) > ROWS:
            read_since = max(read_since, rows[-1].created_at)
        if action == "confirmation.opened":
            confirmed = {(row.actor, row.metadata.get("argsDigest", "")) for row in rows}
        found += _calls(action, rows, confirmed)
    return [call for call in found if call.at >= read_since], read_since, skipped


def _rows(rule: PolicyRule, action: str, since: datetime) -> QuerySet[AuditEntry]:
    if action == "run.submitted" and rule.tool not in (ANY_TOOL, SUBMIT):
        return AuditEntry.objects.none()
    rows = filter_by_time(AuditEntry.objects.filter(action=action), since, None)
    if rule.tool != ANY_TOOL and action != "run.submitted":
        rows = filter_by_tool(rows, rule.tool)
    column = {RuleScope.TENANT: "tenant_id", RuleScope.WORKSPACE: "workspace_id"}
    if rule.scope == RuleScope.AGENT:
        rows = rows.filter(actor=rule.scope_id)
    elif rule.scope in column:
        rows = rows.filter(**{column[RuleScope(rule.scope)]: rule.scope_id})
    return rows.order_by("-id")


def _calls(
    action: str, rows: Sequence[AuditEntry], confirmed: set[tuple[str, str]]
) -> Iterator[RecordedCall]:
    """Yield the calls of these rows; one that a person confirmed counts once, as confirmed."""
    opened = _opened_decisions(rows) if action == "confirmation.opened" else {}
    ruled_as = {rule_label(rule): rule.tool for rule in PolicyRule.objects.all()}
    for row in rows:
        data: dict[str, Any] = row.metadata
        tool = SUBMIT if action == "run.submitted" else str(data.get("tool") or "")
        target, rule = opened.get(row.resource_id) or (data.get("targetId"), data.get("rule"))
        if action == "run.submitted":
            target = data.get("templateId")
        is_end = "decisionId" in data  # of a call that waited for a person
        was_confirmed = action == "tool.called" and (
            (row.actor, data.get("argsDigest", "")) in confirmed
        )
        if tool and not is_end and not was_confirmed:
            yield RecordedCall(
                row.id,
                row.created_at,
                row.actor,
                row.tenant_id,
                row.workspace_id,
                tool,
                str(target or ""),
                _DECIDED[action],
                ruled_as.get(str(rule), ""),
            )


def _opened_decisions(rows: Iterable[AuditEntry]) -> dict[str, tuple[str | None, str]]:
    """Return the target and the rule of each decision that was opened, by its id: the audit row
    lacks them.
    """
    ids = [int(row.resource_id) for row in rows]
    found = Decision.objects.filter(pk__in=ids).values_list("pk", "target_id", "rule")
    return {str(pk): (target, rule) for pk, target, rule in found}
