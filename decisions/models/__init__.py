"""The rows of the ground, a family a file."""

from decisions.models.audit import AuditEntry, AuditSeal
from decisions.models.decision import (
    Confirmation,
    ConfirmationStatus,
    Decision,
    DecisionKind,
    DecisionMode,
    Delivery,
)
from decisions.models.login import LoginLink
from decisions.models.policy import PolicyRule, PolicyStamp, RuleScope, RuleVerdict
from decisions.models.principals import Tenant, Token, User, Workspace

__all__ = [
    "AuditEntry",
    "AuditSeal",
    "Confirmation",
    "ConfirmationStatus",
    "Decision",
    "DecisionKind",
    "DecisionMode",
    "Delivery",
    "LoginLink",
    "PolicyRule",
    "PolicyStamp",
    "RuleScope",
    "RuleVerdict",
    "Tenant",
    "Token",
    "User",
    "Workspace",
]
