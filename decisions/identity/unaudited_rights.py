"""Rights that the audit log does not explain: policy rules, tokens and operators that were written
to the database by other means than Continuity.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from decisions.audit.record import is_genuine
from decisions.models import AuditEntry, PolicyRule, Token

_RULE_WRITTEN = ("policy_rule.created", "policy_rule.changed")
_RULE_ACTIONS = (*_RULE_WRITTEN, "policy_rule.retired")


def list_unaudited_rights() -> list[str]:
    """Return a text about each active rule, token and operator without an audit row that explains
    it, and about each rule that was removed without one.

    Rows without a valid MAC explain nothing.
    """
    return [*_rules(), *_tokens(), *_operators()]


def _rules() -> Iterator[str]:
    active = {rule.key: rule for rule in PolicyRule.objects.filter(retired_at__isnull=True)}
    rows = AuditEntry.objects.filter(resource_type="policy_rule", action__in=_RULE_ACTIONS)
    newest = {row.resource_id: row for row in _genuine(rows.order_by("id"))}
    for key, rule in active.items():
        row = newest.get(key)
        name = f"policy rule {key} ({rule.verdict} {rule.tool}, {rule.scope})"
        if row is None:
            yield f"{name}: no audit row records it"
        elif row.action not in _RULE_WRITTEN or not _is_recorded(rule, row):
            yield f"{name}: it differs from its newest audit row ({row.action}, row {row.id})"
    current = PolicyRule.objects.filter(retired_at__isnull=True)
    for key, row in newest.items():
        is_active = row.action in _RULE_WRITTEN
        # Read again: a rule may have been created since.
        if is_active and key not in active and not current.filter(key=key).exists():
            yield f"policy rule {key}: its newest audit row ({row.id}) says that it is active"


def _is_recorded(rule: PolicyRule, row: AuditEntry) -> bool:
    return bool(rule.recorded_fields().items() <= row.metadata.items())


def _tokens() -> Iterator[str]:
    tokens = {token.id: token for token in Token.objects.filter(revoked_at__isnull=True)}
    rows = _rows_about("token", "token.created")
    created = {row.resource_id: row for row in _genuine(rows)}
    for token_id, token in tokens.items():
        row = created.get(token_id)
        name = f"token {token_id} ({token.name})"
        if row is None:
            yield f"{name}: no audit row records its creation"
        elif (row.metadata.get("scopes"), row.metadata.get("trust")) != (
            token.scopes,
            token.trust,
        ):
            yield f"{name}: its scopes or trust differ from its audit row ({row.id})"


def _operators() -> Iterator[str]:
    staff = list(get_user_model().objects.filter(is_active=True, is_staff=True))
    rows = _rows_about("operator", "operator.created")
    recorded = {row.resource_id for row in _genuine(rows)}
    links = _rows_about("login_link", "login_link.used")
    recorded |= {row.actor.removeprefix("admin:") for row in _genuine(links)}
    for account in staff:
        name = account.get_username()
        if name not in recorded:
            rights = "superuser" if account.is_superuser else "staff"
            yield f"operator {name} ({rights}): no audit row records the creation"


def _genuine(rows: QuerySet[AuditEntry]) -> Iterator[AuditEntry]:
    """Yield the rows that Continuity wrote; the metadata of others can be of any type."""
    return filter(is_genuine, rows.iterator())


def _rows_about(resource_type: str, action: str) -> QuerySet[AuditEntry]:
    return AuditEntry.objects.filter(resource_type=resource_type, action=action)
