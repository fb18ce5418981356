"""Policy rules. A rule is not updated: a new version replaces it, and old versions are kept."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext

from decisions.foundation.infra.ids import new_id


def new_rule_key() -> str:
    """Return a fresh rule key."""
    return new_id("rule_")


class RuleVerdict(models.TextChoices):
    """The decision of a rule on the calls that it matches."""

    ALLOW = "allow"
    DENY = "deny"
    CONFIRM = "confirm"


class RuleScope(models.TextChoices):
    """The callers that a rule applies to, from the widest to the narrowest scope."""

    EVERYWHERE = "everywhere"
    TENANT = "tenant"
    WORKSPACE = "workspace"
    AGENT = "agent"


class PolicyRule(models.Model):
    """One version of a rule.

    Attributes:
        key: the rule's identity, the same in all versions.
        scope_id: the id of the tenant or workspace; of an agent its principal id (`token:tok_…`,
            `local`); empty for everywhere.
        tool: a tool's name, or `*` for every tool.
        target_id: the target; for `run_task_template` the templateId; empty for every target.
        retired_at: when it was replaced by a newer version, or retired.
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
            # At most one active rule per scope, tool and target, so that one rule wins.
            models.UniqueConstraint(
                fields=["scope", "scope_id", "tool", "target_id"],
                condition=Q(retired_at__isnull=True),
                name="rule_in_force_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{gettext(self.verdict)} {self.tool}"

    def recorded_fields(self) -> dict[str, object]:
        """Return the rule's fields as the audit rows about it have them."""
        return {
            "version": self.version,
            "verdict": self.verdict,
            "scope": self.scope,
            "scopeId": self.scope_id,
            "tool": self.tool,
            "targetId": self.target_id,
            "reason": self.reason,
        }


class PolicyStamp(models.Model):
    """A single row that changes with every change of the rules, last in its transaction. A process
    may use its cached rules while the stamp is the same.
    """

    id = models.IntegerField(primary_key=True)
    stamp = models.CharField(max_length=64)

    def __str__(self) -> str:
        return self.stamp
