"""Who acts in a request of the admin site."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from decisions.identity.principals import Principal, admin_principal


def actor_of(request: HttpRequest) -> str:
    """Return the request's user as audit rows name them."""
    return f"admin:{request.user.get_username()}"


def operator_of(request: HttpRequest, row: Any) -> Principal:
    """Return the request's user as a principal of the tenant and workspace that a row belongs to;
    its workspace may be None.
    """
    return admin_principal(
        request.user.get_username(),
        tenant_id=row.tenant_id,
        workspace_id=row.workspace_id or "",
    )
