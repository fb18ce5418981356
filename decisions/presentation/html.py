"""Small pieces of HTML that lists and pages share; every value in them is escaped."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from django.contrib import admin
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from decisions.presentation.formatting import ago, short_id

# What audit rows call a thing whose model has another name.
_MODELS = {
    "session": "browsersession",
    "operator": "",
    "rule": "policyrule",
    "target": "executiontarget",
}

TONES = {"allow": "succeeded", "deny": "failed", "confirm": "waiting"}  # of policy's words


def moment(at: datetime | None) -> SafeString:
    """Return how long ago it was, the exact time in its title."""
    if at is None:
        return format_html('<span class="cty-dim">{}</span>', "never")
    exact = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        exact.isoformat(timespec="seconds"),
        exact.strftime("%Y-%m-%d %H:%M:%S"),
        ago(at),
    )


def pill(text: str, tone: str) -> SafeString:
    """Return a coloured label; tones are the status words and `neutral`."""
    return format_html('<span class="cty-pill" data-tone="{}">{}</span>', tone, text)


def status_pill(status: str) -> SafeString:
    """Return a run's or a step's status as a coloured label."""
    return pill(status.replace("_", " "), status)


def code(text: str, *, shown: str | None = None) -> SafeString:
    """Return an id or a name in the fixed font, whole in its title when it is shown shortened."""
    return format_html('<span class="cty-mono" title="{}">{}</span>', text, shown or text)


def link_to(model_name: str, object_id: str, *, shown: str | None = None) -> SafeString:
    """Return a row's id as a link to its page, or as plain text where it has none."""
    text = code(object_id, shown=shown or short_id(object_id))
    page = admin_url(model_name, object_id)
    return format_html('<a class="cty-link" href="{}">{}</a>', page, text) if page else text


def link_about(resource_type: str, resource_id: str) -> SafeString:
    """Return what an audit row is about as a link to its page, or as plain text where it has none.

    Audit rows name a user by the user_id; users are found by it in their list.
    """
    if resource_type == "user":
        found = f"{reverse('admin:decisions_user_changelist')}?{urlencode({'q': resource_id})}"
        return format_html('<a class="cty-link" href="{}">{}</a>', found, code(resource_id))
    model_name = _MODELS.get(resource_type, resource_type.replace("_", ""))
    return link_to(model_name, resource_id)


def admin_url(model_name: str, object_id: str) -> str | None:
    """Return the admin page of a row of any part by its model's name; None where there is no such
    page.
    """
    for model in admin.site._registry:
        if model._meta.model_name == model_name and model._meta.app_label != "auth":
            try:
                return reverse(
                    f"admin:{model._meta.app_label}_{model_name}_change", args=[object_id]
                )
            except NoReverseMatch:
                return None
    return None
