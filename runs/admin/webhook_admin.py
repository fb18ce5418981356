"""Webhooks and their deliveries in the admin site: make one, pause one, send a message again; each
deed goes through the services as every door's does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from unfold.widgets import UnfoldAdminTextInputWidget

from decisions.admin.filters import WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.admin.secret_creation import MakingAdmin
from decisions.errors import Refused
from decisions.identity.principals import LOCAL, Principal, admin_principal, ensure_workspace
from decisions.presentation.html import code, link_to, moment, pill
from runs.models import BEING_SENT, DeliveryStatus, Webhook, WebhookDelivery
from runs.webhooks import services

AT_ONCE = 100  # rows that one list action takes
_TONES = {"pending": "queued", "delivered": "succeeded", "failed": "failed"}
_NAME = r"\A[\w .@:+-]{1,128}\Z"


class WebhookForm(forms.Form):
    """A new webhook. Who signs in here is trusted as a local caller is: private addresses may be
    named.
    """

    url = forms.CharField(
        max_length=2048, widget=UnfoldAdminTextInputWidget, help_text="http or https; is POSTed to."
    )
    name = forms.RegexField(
        _NAME, widget=UnfoldAdminTextInputWidget, help_text="To tell it from others later."
    )
    workspace = forms.RegexField(_NAME, widget=UnfoldAdminTextInputWidget, initial=LOCAL)
    every_run = forms.BooleanField(
        required=False,
        initial=True,
        help_text="Tell of every run; else only of runs that name it in options.webhookId.",
    )
    confirmations = forms.BooleanField(
        required=False,
        help_text="Also tell what waits for a person, with a link: whoever gets it can decide.",
    )


def _operator(request: HttpRequest, hook: Webhook) -> Principal:
    return admin_principal(
        request.user.get_username(), tenant_id=hook.tenant_id, workspace_id=hook.workspace_id
    )


@admin.register(Webhook)
class WebhookAdmin(MakingAdmin):
    """Who is told of runs that ended. Secrets are never shown."""

    list_display = ("name", "state", "shown_id", "url", "told_of", "made")
    list_filter = (WorkspaceFilter,)
    ordering = ("-created_at", "-id")
    search_fields = ("id", "name")
    search_help_text = "A name or an id"
    actions = ("enable_selected", "disable_selected")
    make_form, make_title = WebhookForm, "New webhook"
    make_template = "admin/runs/webhook/new.html"
    change_list_template = "admin/runs/webhook/list.html"
    fields = (
        "name",
        "state",
        "shown_id",
        "url",
        "trust",
        "told_of",
        "created_by",
        "made",
        "disabled_because",
    )
    readonly_fields = fields

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may pause them."""
        return request.user.has_perm("runs.change_webhook")

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, and that of making a webhook before them."""
        make = self.admin_site.admin_view(never_cache(self.make_view))
        return [path("new/", make, name="runs_webhook_new"), *super().get_urls()]

    def make(self, request: HttpRequest, given: dict[str, Any]) -> str:
        """Make a webhook and return its secret."""
        place = ensure_workspace(given["workspace"])
        operator = admin_principal(
            request.user.get_username(), tenant_id=place.tenant_id, workspace_id=place.id
        )
        made = services.create_webhook(
            principal=operator,
            url=given["url"],
            name=given["name"],
            every_run=given["every_run"],
            confirmations=given["confirmations"],
        )
        return str(made["secret"])

    @admin.action(description="Enable selected webhooks", permissions=["operate"])
    def enable_selected(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> None:
        """Let the ticked webhooks be told again."""
        self._each(request, queryset, services.enable_webhook, "enabled")

    @admin.action(description="Disable selected webhooks", permissions=["operate"])
    def disable_selected(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> None:
        """Pause the ticked webhooks."""
        self._each(request, queryset, services.disable_webhook, "disabled")

    def _each(
        self, request: HttpRequest, hooks: QuerySet[Webhook], deed: Callable[..., Any], done: str
    ) -> None:
        for hook in hooks[:AT_ONCE]:
            deed(principal=_operator(request, hook), webhook_id=hook.id)
            self.message_user(request, f"{hook.name} is {done}.", messages.SUCCESS)

    @admin.display(description="State")
    def state(self, hook: Webhook) -> SafeString:
        """Return whether it is told."""
        return pill("disabled", "canceled") if hook.disabled_at else pill("enabled", "succeeded")

    @admin.display(description="Id")
    def shown_id(self, hook: Webhook) -> SafeString:
        """Return the id, which submits name."""
        return code(hook.id)

    @admin.display(description="Told of")
    def told_of(self, hook: Webhook) -> str:
        """Return of which runs it is told."""
        runs = "every run" if hook.every_run else "runs that name it"
        return f"{runs}, what waits for a person" if hook.tells_confirmations else runs

    @admin.display(description="Made")
    def made(self, hook: Webhook) -> SafeString:
        """Return when it was made."""
        return moment(hook.created_at)


class StatusFilter(admin.SimpleListFilter):
    """By where a delivery stands."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return them."""
        return [(str(value), str(label)) for value, label in DeliveryStatus.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one of them."""
        return queryset if self.value() is None else queryset.filter(status=self.value())


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    """What became of the messages, newest first."""

    list_display = (
        "state",
        "tells_of",
        "by_webhook",
        "event",
        "attempts",
        "status_code",
        "error",
        "tried",
        "next_try",
    )
    list_display_links = None
    list_filter = (StatusFilter,)
    ordering = ("-created_at", "-id")
    search_fields = ("id", "run__id", "webhook__id")
    search_help_text = "msg_…, run_… or hook_… id"
    actions = ("replay_selected",)
    fields = ("shown_id", *list_display, "made")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookDelivery]:
        """Return deliveries with their webhooks."""
        rows: QuerySet[WebhookDelivery] = super().get_queryset(request)
        return rows.select_related("webhook")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[WebhookDelivery], search_term: str
    ) -> tuple[QuerySet[WebhookDelivery], bool]:
        """Find deliveries by an id."""
        term = search_term.strip()
        field = {"run": "run_id", "hook": "webhook_id"}.get(term.partition("_")[0], "id")
        return (queryset.filter(**{field: term}) if term else queryset), False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may replay."""
        return request.user.has_perm("runs.change_webhookdelivery")

    @admin.action(description="Replay selected deliveries", permissions=["operate"])
    def replay_selected(self, request: HttpRequest, queryset: QuerySet[WebhookDelivery]) -> None:
        """Send the ticked messages again."""
        for row in queryset[:AT_ONCE]:
            try:
                services.replay_delivery(
                    principal=_operator(request, row.webhook),
                    webhook_id=row.webhook_id,
                    delivery_id=row.id,
                )
            except Refused as refusal:
                told = f"{row.id} is not replayed: {refusal.message}"
                self.message_user(request, told, messages.ERROR)
            else:
                self.message_user(request, f"{row.id} is sent again.", messages.SUCCESS)

    @admin.display(description="Status")
    def state(self, row: WebhookDelivery) -> SafeString:
        """Return where it stands."""
        return pill(row.status, _TONES[row.status])

    @admin.display(description="Message")
    def shown_id(self, row: WebhookDelivery) -> SafeString:
        """Return the `webhook-id`."""
        return code(row.id)

    @admin.display(description="Tells of")
    def tells_of(self, row: WebhookDelivery) -> SafeString:
        """Return the run or the decision it tells of."""
        if row.run_id:
            return link_to("run", row.run_id)
        return link_to("decision", str(row.decision_id), label=f"decision {row.decision_id}")

    @admin.display(description="Webhook")
    def by_webhook(self, row: WebhookDelivery) -> SafeString:
        """Return who is told."""
        return link_to("webhook", row.webhook_id, label=row.webhook.name)

    @admin.display(description="Last try")
    def tried(self, row: WebhookDelivery) -> SafeString:
        """Return when it was last tried."""
        return moment(row.tried_at)

    @admin.display(description="Next try")
    def next_try(self, row: WebhookDelivery) -> SafeString | str:
        """Return when it is tried next, while it is."""
        if row.status != DeliveryStatus.PENDING:
            return "–"
        return "now" if row.next_try_at == BEING_SENT else moment(row.next_try_at)

    @admin.display(description="Made")
    def made(self, row: WebhookDelivery) -> SafeString:
        """Return when the run ended."""
        return moment(row.created_at)
