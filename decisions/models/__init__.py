"""The rows of the ground, a family a file."""

from decisions.models.audit import AuditEntry
from decisions.models.principals import Tenant, Token, User, Workspace

__all__ = ["AuditEntry", "Tenant", "Token", "User", "Workspace"]
