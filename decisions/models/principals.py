"""Tenants, their workspaces, and the users and tokens of a workspace."""

from __future__ import annotations

from django.db import models

from decisions.foundation.infra.ids import new_id


def new_tenant_id() -> str:
    """Return a fresh tenant id."""
    return new_id("ten_")


def new_workspace_id() -> str:
    """Return a fresh workspace id."""
    return new_id("ws_")


def new_token_id() -> str:
    """Return a fresh token id, which is public, unlike the token."""
    return new_id("tok_")


class Tenant(models.Model):
    """An organization; tenants share no data."""

    id = models.CharField(primary_key=True, max_length=64, default=new_tenant_id, editable=False)
    name = models.CharField(max_length=128, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Workspace(models.Model):
    """The unit of isolation of queries: rows of another workspace appear as not found."""

    id = models.CharField(primary_key=True, max_length=64, default=new_workspace_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="workspaces")
    name = models.CharField(max_length=128)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="workspace_name_per_tenant")
        ]

    def __str__(self) -> str:
        return self.name


class User(models.Model):
    """A user that agents act for (S2's user_id); not a login of the admin site."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="users")
    user_id = models.CharField(max_length=128)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user_id"], name="user_id_per_workspace")
        ]

    def __str__(self) -> str:
        return self.user_id


class Token(models.Model):
    """A bearer token; only its keyed digest is stored.

    Attributes:
        expires_at: from when on it is refused; None for a token that does not expire.
    """

    id = models.CharField(primary_key=True, max_length=64, default=new_token_id, editable=False)
    name = models.CharField(max_length=128)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="tokens")
    # The user_ids that it may act for; empty for any user of the workspace. A list, not a relation:
    # every API call reads it.
    acts_for = models.JSONField(default=list)
    scopes = models.JSONField(default=list)
    trust = models.CharField(max_length=8, choices=[("local", "local"), ("remote", "remote")])
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(trust__in=["local", "remote"]), name="token_trust_level"
            )
        ]

    def __str__(self) -> str:
        return self.name
