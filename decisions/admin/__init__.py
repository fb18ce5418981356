"""The ground in the admin site: who calls, who operates, what was done."""

from decisions.admin import audit, decisions, operators, policy, principals, sign_in, tokens

__all__ = ["audit", "decisions", "operators", "policy", "principals", "sign_in", "tokens"]
