"""Models of `decisions`: principals, policy, decisions, the Continuity API, the audit log."""

from decisions.models.audit import AuditEntry, AuditSeal
from decisions.models.chat import ChatAnswer, Conversation, Event
from decisions.models.decision import (
    Confirmation,
    ConfirmationStatus,
    Decision,
    DecisionKind,
    DecisionMode,
    Delivery,
)
from decisions.models.login import LoginLink
from decisions.models.objects import ObjectType, ObjectVersion, UserObject
from decisions.models.outcome import Outcome, OutcomeStatus
from decisions.models.policy import PolicyRule, PolicyStamp, RuleScope, RuleVerdict
from decisions.models.principals import Tenant, Token, User, Workspace
from decisions.models.state import Axis, AxisValue, Evidence

__all__ = [
    "AuditEntry",
    "AuditSeal",
    "Axis",
    "AxisValue",
    "ChatAnswer",
    "Confirmation",
    "ConfirmationStatus",
    "Conversation",
    "Decision",
    "DecisionKind",
    "DecisionMode",
    "Delivery",
    "Event",
    "Evidence",
    "LoginLink",
    "ObjectType",
    "ObjectVersion",
    "Outcome",
    "OutcomeStatus",
    "PolicyRule",
    "PolicyStamp",
    "RuleScope",
    "RuleVerdict",
    "Tenant",
    "Token",
    "User",
    "UserObject",
    "Workspace",
]
