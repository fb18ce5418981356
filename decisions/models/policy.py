"""The rules of policy. A rule is never changed: a new version takes its place, the old stay."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from decisions.infra.ids import new_id


def new_rule_key() -> str:
    """Return a fresh rule key."""
    return new_id("rule_")


class RuleVerdict(models.TextChoices):
    """What a rule says of the calls that it matches."""

    ALLOW = "allow"
    DENY = "deny"
    CONFIRM = "confirm"


class RuleScope(models.TextChoices):
    """Whose calls a rule is about, from the widest to the narrowest."""

    EVERYWHERE = "everywhere"
    TENANT = "tenant"
    WORKSPACE = "workspace"
    AGENT = "agent"


class PolicyRule(models.Model):
    """One version of a rule.

    Attributes:
        key: the rule through all its versions.
        scope_id: the id of the tenant or workspace; of an agent its principal (`token:tok_…`,
            `local`); empty for everywhere.
        tool: a tool's name, or `*` for every one.
        target_id: the target, of `run_task_template` the templateId; empty for every one.
        retired_at: when a newer version, or nothing, took its place.
    """

    id = models.BigAutoField(primary_key=True)
    key = models.CharField(max_length=64, default=new_rule_key, editable=False)
    version = models.IntegerField(default=1, editable=False)
    verdict = models.CharField(max_length=8, choices=RuleVerdict.choices)
    scope = models.CharField(max_length=16, choices=RuleScope.choices)
    scope_id = models.CharField(max_length=160, default="", blank=True)
    tool = models.CharField(max_length=128, default="*")
    target_id = models.CharField(max_length=128, default="", blank=True)
    reason = models.CharField(max_length=300, default="", blank=True)
    created_by = models.CharField(max_length=160, editable=False)
    created_at = models.DateTimeField(editable=False)
    retired_by = models.CharField(max_length=160, default="", blank=True, editable=False)
    retired_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(verdict__in=RuleVerdict.values), name="rule_verdict_known"
            ),
            models.CheckConstraint(
                condition=Q(scope="everywhere", scope_id="")
                | Q(scope__in=["tenant", "workspace", "agent"]) & ~Q(scope_id=""),
                name="rule_scope_named",
            ),
            models.UniqueConstraint(fields=["key", "version"], name="rule_version_once"),
            # No two rules in force about the same: which of them wins would be anybody's guess.
            models.UniqueConstraint(
                fields=["scope", "scope_id", "tool", "target_id"],
                condition=Q(retired_at__isnull=True),
                name="rule_in_force_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} {self.tool}"


class PolicyStamp(models.Model):
    """One row that changes with every change of the rules, last in the transaction that makes it;
    what a process knows of them is good for as long as it reads the same stamp.
    """

    id = models.IntegerField(primary_key=True)
    stamp = models.CharField(max_length=64)

    def __str__(self) -> str:
        return self.stamp
