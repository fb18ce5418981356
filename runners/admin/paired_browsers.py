"""Admin pages of paired browsers: the list, one browser with what it has open, pairing, removal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from decisions.admin.acting import actor_of
from decisions.admin.filters import WorkspaceFilter
from decisions.admin.read_only import plain_id
from decisions.admin.secret_creation import SecretCreationAdmin
from decisions.foundation.presentation.html import code, link_to, moment, pill
from decisions.foundation.presentation.words import word
from decisions.identity.principals import (
    ADMIN,
    Principal,
    admin_principal,
    ensure_workspace,
    local_principal,
    valid_token,
)
from decisions.identity.tokens import principal_of_token
from decisions.models import Token
from runners.models import PluginClient
from runners.paired_browser.connections.snapshots import delete_snapshot, read_snapshot
from runners.paired_browser.pairing.registry import revoke_browser
from runners.paired_browser.pairing.selectors import browser_name, is_connected, is_healthy
from runners.paired_browser.pairing.tickets import SCOPE, create_ticket

ME, MACHINE = "me", "local"
TOKENS_SHOWN = 200
_ADD, _CHANGE = "runners.add_pluginclient", "runners.change_pluginclient"


class PairingForm(forms.Form):
    """Whose tasks may use the browser, and its name."""

    owner = forms.ChoiceField(
        label=_("For the tasks of"),
        widget=UnfoldAdminSelectWidget,
        help_text=_("Only these tasks can act in the browser, with your accounts in it."),
    )
    name = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=128,
        widget=UnfoldAdminTextInputWidget,
        help_text=_("By default the program and its system."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        tokens = Token.objects.filter(valid_token()).order_by("-created_at")[:TOKENS_SHOWN]
        owner: Any = self.fields["owner"]
        owner.choices = [
            (ME, gettext("me, in this admin")),
            (MACHINE, gettext("agent hosts on the server's machine (MCP over stdio)")),
            *(
                (token.id, gettext("the token %(name)s") % {"name": token.name})
                for token in tokens
                if SCOPE in token.scopes
            ),
        ]


@admin.register(PluginClient)
class PairedBrowserAdmin(SecretCreationAdmin):
    """Paired browsers, the last seen first. Digests are never shown."""

    list_title = _("Browsers")
    list_empty = _("Install the extension in your browser, then pair it here.")
    list_display = (
        "name",
        "display_state",
        "display_owner",
        "display_program",
        "display_last_seen",
        "display_last_used",
        "display_id",
    )
    list_filter = (WorkspaceFilter,)
    ordering = ("-last_seen_at", "-id")
    search_fields = ("id", "name", "principal_id")
    search_help_text = _("A name, an id or an owner")
    creation_form, creation_title = PairingForm, _("Pair a browser")
    creation_template = "admin/runners/pluginclient/new.html"
    change_list_template = "admin/runners/pluginclient/list.html"
    change_form_template = "admin/runners/pluginclient/page.html"
    fields = (*list_display, "display_extension", "display_paired", "display_workspace")
    readonly_fields = fields

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, with those that pair and remove a browser."""
        wrap = self.admin_site.admin_view
        name = "runners_pluginclient"
        return [
            path("new/", wrap(never_cache(self.create_view)), name=f"{name}_new"),
            path("<str:client_id>/remove/", wrap(self.remove_view), name=f"{name}_remove"),
            *super().get_urls(),
        ]

    def create(self, request: HttpRequest, data: dict[str, Any]) -> str:
        """Create a ticket and return the pairing link, which has the server and the ticket."""
        ticket = create_ticket(
            principal=_owner(request, data["owner"]), name=data["name"], actor=actor_of(request)
        )
        server = settings.PUBLIC_URL or f"{request.scheme}://{request.get_host()}"
        return f"{server}#{ticket['ticket']}"

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a browser, with what it has open for those whom that concerns."""
        client = PluginClient.objects.filter(id=plain_id(object_id)).first()
        context: dict[str, Any] = {}
        if client is not None:
            may_look = _may_look(request, client)
            context = {
                "may_remove": _may_remove(request, client) and client.revoked_at is None,
                "may_look": may_look,
                "snapshot": _shown(read_snapshot(client)) if may_look else None,
            }
        return super().change_view(request, object_id, form_url, context | (extra_context or {}))

    def remove_view(self, request: HttpRequest, client_id: str) -> HttpResponse:
        """Remove a browser and redirect to the list."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        client = get_object_or_404(PluginClient, id=plain_id(client_id))
        if not _may_remove(request, client):
            raise PermissionDenied
        if revoke_browser(client, actor=actor_of(request)):
            delete_snapshot(client.id)
            text = gettext("%(name)s is removed. It can connect again only after a new pairing.")
            self.message_user(request, text % {"name": client.name}, messages.SUCCESS)
        else:
            self.message_user(request, gettext("It was removed before."), messages.WARNING)
        return redirect(reverse("admin:runners_pluginclient_changelist"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[PluginClient]:
        """Return the browsers that are paired, and on the page of one also a removed one."""
        rows: QuerySet[PluginClient] = super().get_queryset(request)
        is_list = request.path == reverse("admin:runners_pluginclient_changelist")
        return rows.filter(revoked_at__isnull=True) if is_list else rows

    @admin.display(description=_("State"))
    def display_state(self, client: PluginClient) -> SafeString:
        """Return whether the browser is connected."""
        if client.revoked_at is not None:
            return pill(gettext("removed"), "canceled")
        if not is_connected(client):
            return pill(gettext("not connected"), "neutral")
        if not is_healthy(client):
            return pill(gettext("does not answer"), "failed")
        return pill(gettext("connected"), "succeeded")

    @admin.display(description=_("For the tasks of"))
    def display_owner(self, client: PluginClient) -> SafeString | str:
        """Return whose tasks may use it."""
        kind, _separator, name = client.principal_id.partition(":")
        return link_to("token", name) if kind == "token" else code(client.principal_id)

    @admin.display(description=_("Program"))
    def display_program(self, client: PluginClient) -> str:
        """Return the browser and its system."""
        return word(browser_name(client.user_agent))

    @admin.display(description=_("Last seen"))
    def display_last_seen(self, client: PluginClient) -> SafeString:
        """Return when it sent a message last."""
        return moment(client.last_seen_at)

    @admin.display(description=_("Last used"))
    def display_last_used(self, client: PluginClient) -> SafeString:
        """Return when a task acted in it last."""
        return moment(client.last_used_at)

    @admin.display(description=_("Id"))
    def display_id(self, client: PluginClient) -> SafeString:
        """Return the id, which tasks name."""
        return code(client.id)

    @admin.display(description=_("Extension"))
    def display_extension(self, client: PluginClient) -> str:
        """Return the extension and its version."""
        return f"{client.extension_name} {client.extension_version}"

    @admin.display(description=_("Paired"))
    def display_paired(self, client: PluginClient) -> SafeString:
        """Return when it was paired."""
        return moment(client.created_at)

    @admin.display(description=_("Workspace"))
    def display_workspace(self, client: PluginClient) -> SafeString:
        """Return the workspace of its owner."""
        return link_to("workspace", client.workspace_id)


def _owner(request: HttpRequest, owner: str) -> Principal:
    """Return the principal that a choice of the form means."""
    if owner == MACHINE:
        return local_principal()
    if owner != ME:
        return principal_of_token(owner)
    workspace = ensure_workspace()
    me = admin_principal(
        request.user.get_username(), tenant_id=workspace.tenant_id, workspace_id=workspace.id
    )
    return replace(me, permission=_ADD)  # the browser is disconnected with it


def _is_mine(request: HttpRequest, client: PluginClient) -> bool:
    return actor_of(request) in (client.paired_by, client.principal_id)


def _may_look(request: HttpRequest, client: PluginClient) -> bool:
    """Return whether a user may see what a browser has open: the person who paired it; of one that
    was paired outside of the admin, users who may change browsers.
    """
    is_a_persons = ADMIN in (client.paired_by[: len(ADMIN)], client.principal_id[: len(ADMIN)])
    return _is_mine(request, client) or (not is_a_persons and request.user.has_perm(_CHANGE))


def _may_remove(request: HttpRequest, client: PluginClient) -> bool:
    return _is_mine(request, client) or request.user.has_perm(_CHANGE)


def _shown(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return a snapshot with its tabs by window, each with the group that it is in."""
    state = snapshot["state"] or {"windows": [], "groups": [], "tabs": []}
    groups = {group["groupId"]: group.get("title", "") for group in state["groups"]}
    windows = [
        {
            **window,
            "tabs": [
                {**tab, "group": groups.get(tab.get("groupId"), "")}
                for tab in state["tabs"]
                if tab["windowId"] == window["windowId"]
            ],
        }
        for window in state["windows"]
    ]
    return {**snapshot, "windows": windows, "tabs": len(state["tabs"])}
