"""The rows of the ground, a family a file."""

from decisions.models.audit import AuditEntry, AuditSeal
from decisions.models.login import LoginLink
from decisions.models.principals import Tenant, Token, User, Workspace

__all__ = ["AuditEntry", "AuditSeal", "LoginLink", "Tenant", "Token", "User", "Workspace"]
