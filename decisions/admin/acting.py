"""Who acts in a request of the admin site, and on which rows of a list."""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib import messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _

from decisions.identity.principals import Principal, admin_id, admin_principal

ACTION_ROWS = 100  # rows that one list action accepts
Row = TypeVar("Row", bound=Model)


def actor_of(request: HttpRequest) -> str:
    """Return the request's user as audit rows name them."""
    return admin_id(request.user.get_username())


def operator_of(request: HttpRequest, row: Any) -> Principal:
    """Return the request's user as a principal of the tenant and workspace that a row belongs to;
    its workspace may be None.
    """
    return admin_principal(
        request.user.get_username(),
        tenant_id=row.tenant_id,
        workspace_id=row.workspace_id or "",
    )


def rows_of_action(request: HttpRequest, selected: QuerySet[Row]) -> list[Row]:
    """Return the selected rows of a list action; none, with a message, if they are too many."""
    rows = list(selected[: ACTION_ROWS + 1])
    if len(rows) > ACTION_ROWS:
        messages.error(
            request, _("Select at most %(count)s rows; nothing was done.") % {"count": ACTION_ROWS}
        )
        return []
    return rows
