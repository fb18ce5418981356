"""The ground in the admin site: who calls, who operates, what was decided and done, what is
kept.
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
