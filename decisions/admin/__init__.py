"""The ground in the admin site: who calls, who operates, what was done."""

from decisions.admin import audit, operators, principals, sign_in, tokens

__all__ = ["audit", "operators", "principals", "sign_in", "tokens"]
