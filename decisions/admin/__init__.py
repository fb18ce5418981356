"""Admin pages of decisions, policy rules, tokens, tenants, workspaces, users, operators, user state
and the audit log, and the base classes of all admin pages.
"""

from decisions.admin import (
    audit,
    continuity,
    decisions,
    operators,
    policy,
    principals,
    sign_in,
    tokens,
)

__all__ = [
    "audit",
    "continuity",
    "decisions",
    "operators",
    "policy",
    "principals",
    "sign_in",
    "tokens",
]
