"""HTML fragments of the admin site: times, labels, ids, links. Every value is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from decisions.foundation.presentation.formatting import ago, short_id
from decisions.foundation.presentation.resource_types import model_name_of
from decisions.foundation.presentation.visible_text import Fragment, Part, visible
from decisions.foundation.presentation.words import word

_DIFF_LINES = {"+": "added", "-": "removed", "@": "place"}
_ID = "row-id"  # in place of the id of a row
TONES = {"allow": "succeeded", "deny": "failed", "confirm": "waiting"}  # of policy decisions


def shown_html(fragment: Fragment) -> SafeString:
    """Return a fragment of a text that a person decides by; lines of a diff are coloured."""
    lines: list[list[Part]] = [[]]
    for part in fragment.parts:
        lines[-1].append(part)
        if part.kind == "newline":
            lines.append([])
    return format_html_join("", "{}", ((_line(line, fragment.is_diff),) for line in lines if line))


def _line(line: list[Part], is_diff: bool) -> SafeString:
    text = format_html_join("", "{}", ((_part(part),) for part in line))
    kind = _DIFF_LINES.get(line[0].text[:1]) if is_diff else None
    return format_html('<span class="shown-{}">{}</span>', kind, text) if kind else text


def _part(part: Part) -> SafeString | str:
    if not part.kind or part.kind == "rtl":
        return part.text
    if part.kind == "newline":
        return format_html('<i class="shown-mark">{}</i>\n', part.shown.rstrip("\n"))
    return format_html('<b class="shown-{}">{}</b>', part.kind, part.shown)


def moment(at: datetime | None) -> SafeString:
    """Return a time relative to now, with the exact time as its title (shell.js localizes both)."""
    if at is None:
        return format_html('<span class="cty-dim">{}</span>', _("never"))
    exact = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC" data-moment>{}</time>',
        exact.isoformat(timespec="seconds"),
        exact.strftime("%Y-%m-%d %H:%M:%S"),
        ago(at),
    )


def pill(text: str, tone: str) -> SafeString:
    """Return a coloured label in the page's language; `tone` is a status or `neutral`."""
    return format_html('<span class="cty-pill" data-tone="{}">{}</span>', tone, word(text))


def status_pill(status: str) -> SafeString:
    """Return a run's or a step's status as a coloured label."""
    return pill(status.replace("_", " "), status)


def code(text: str, *, label: str | None = None) -> SafeString:
    """Return an id or a name in the monospace font, each character visible; with a label, the text
    becomes its title.
    """
    shown = visible(text), visible(label or text)
    return format_html('<span class="cty-mono" title="{}">{}</span>', *shown)


def link_to(model_name: str, object_id: str, *, label: str | None = None) -> SafeString:
    """Return a link to a row's admin page, by default with its short id; without page, text."""
    text = code(object_id, label=label or short_id(object_id))
    page = admin_url(model_name, object_id)
    return format_html('<a class="cty-link" href="{}">{}</a>', page, text) if page else text


def link_about(resource_type: str, resource_id: str) -> SafeString:
    """Return a link to the resource of an audit row; plain text for a resource without a page.

    Audit rows name a user by user_id, so the link searches the list of users.
    """
    if resource_type == "user":
        search = f"{reverse('admin:decisions_user_changelist')}?{urlencode({'q': resource_id})}"
        return format_html('<a class="cty-link" href="{}">{}</a>', search, code(resource_id))
    return link_to(model_name_of(resource_type), resource_id)


def breadcrumb(part: Mapping[str, Any], request: HttpRequest) -> str:
    """Return the text of a part of the page header's path, each character visible; a list is named
    by its list title.
    """
    title, link = part["title"], str(part.get("link", ""))
    for model, model_admin in admin.site._registry.items():
        get_list_title = getattr(model_admin, "get_list_title", None)
        label = model._meta.label_lower.replace(".", "_")
        if get_list_title and link == reverse(f"admin:{label}_changelist"):
            return str(get_list_title(request))
    return visible(str(title) if hasattr(title, "pk") else capfirst(str(title)))


def admin_url(model_name: str, object_id: str) -> str | None:
    """Return the URL of a row's admin page by its model's name in any app; None without a page."""
    address = _address_of_rows(model_name)
    return None if address is None or not object_id else address.replace(_ID, _quoted(object_id))


@cache
def _address_of_rows(model_name: str) -> str | None:
    """Return the URL of a model's rows with _ID in place of the id; a list has many of them, and
    `reverse` takes long.
    """
    for model in admin.site._registry:
        if model._meta.model_name == model_name and model._meta.app_label != "auth":
            return reverse(f"admin:{model._meta.app_label}_{model_name}_change", args=[_ID])
    return None


def _quoted(object_id: str) -> str:
    return quote(object_id, safe="!$&'()*+,;=/~:@")  # as `reverse` does
