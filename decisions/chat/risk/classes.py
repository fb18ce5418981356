"""The classes of risky actions."""

from __future__ import annotations

from enum import StrEnum


class RiskClass(StrEnum):
    """A class of actions that need a person's confirmation; its value is the rule in l4_gate."""

    DELETION = "irreversible_deletion"
    MONEY = "money_out"
    PRODUCTION = "production"
    CREDENTIALS = "credentials"
    RIGHTS = "rights"
    MASS = "mass_messages"
