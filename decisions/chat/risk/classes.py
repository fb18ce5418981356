"""The intrinsic classes of risky actions (continuity.md, step 6)."""

from __future__ import annotations

from enum import StrEnum


class RiskClass(StrEnum):
    """A class of actions that a person confirms first; its value names the rule in l4_gate."""

    DELETION = "irreversible_deletion"
    MONEY = "money_out"
    PRODUCTION = "production"
    CREDENTIALS = "credentials"
    RIGHTS = "rights"
    MASS = "mass_messages"
