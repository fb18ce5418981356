"""Saved views of the list of runs: each operator has their own."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from decisions.foundation.presentation.visible_text import visible
from runs.models import SavedView

VIEWS_MAX = 30  # of an operator
NAME_MAX, QUERY_MAX = 64, 2000


def views_of(request: HttpRequest, current: str) -> list[dict[str, Any]]:
    """Return the operator's views by name; `current` is the query of the shown list."""
    rows = _own_views(request).order_by("name")[:VIEWS_MAX]
    shown = sorted(parse_qsl(current))
    return [
        {
            "view": row,
            "name": visible(row.name),
            "is_chosen": sorted(parse_qsl(row.query)) == shown,
        }
        for row in rows
    ]


def save_view(request: HttpRequest) -> HttpResponse:
    """Save the posted query under the posted name, or replace the view of this name."""
    name = " ".join(request.POST.get("name", "").replace("\0", "").split())
    query = urlencode(parse_qsl(request.POST.get("query", "").replace("\0", "")))
    back = redirect(f"{reverse('admin:runs_run_changelist')}?{query}")
    if not 0 < len(name) <= NAME_MAX or len(query) > QUERY_MAX:
        messages.error(request, _("A view needs a name of 1 to 64 characters; nothing was saved."))
        return back
    views = _own_views(request)
    if not views.filter(name=name).exists() and views.count() >= VIEWS_MAX:
        messages.error(request, _("You have 30 views; delete one first. Nothing was saved."))
        return back
    owner = {"owner_id": _owner_id(request)}
    views.update_or_create(name=name, defaults={"query": query, **owner})
    messages.success(request, _("The view is saved."))
    return back


def delete_view(request: HttpRequest, view_id: int) -> HttpResponse:
    """Delete one of the operator's views."""
    deleted, _rows = _own_views(request).filter(id=view_id).delete()
    if deleted:
        messages.success(request, _("The view is deleted."))
    return redirect("admin:runs_run_changelist")


def _own_views(request: HttpRequest) -> QuerySet[SavedView]:
    return SavedView.objects.filter(owner_id=_owner_id(request))


def _owner_id(request: HttpRequest) -> int:
    assert request.user.pk is not None  # noqa: S101  (the admin's views require an operator)
    return request.user.pk
