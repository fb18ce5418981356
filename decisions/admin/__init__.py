"""Admin pages of decisions, policy rules, tokens, tenants, workspaces, users, operators, user state
and the audit log, and the base classes of all admin pages.
"""

from decisions.admin import (
    audit,
    decisions,
    operators,
    principals,
    sign_in,
    tokens,
    user_memory,
)
from decisions.admin.policy import rules

__all__ = [
    "audit",
    "decisions",
    "operators",
    "principals",
    "rules",
    "sign_in",
    "tokens",
    "user_memory",
]
