"""Admin pages of webhooks and their deliveries.

Creating, enabling, disabling and replaying call the same services as the REST API.
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
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from unfold.widgets import UnfoldAdminTextInputWidget

from decisions.admin.acting import operator_of, rows_of_action
from decisions.admin.columns import column
from decisions.admin.filters import ChoiceFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.admin.secret_creation import SecretCreationAdmin
from decisions.foundation.errors import Refused
from decisions.foundation.presentation.html import code, link_to, moment, pill
from decisions.foundation.presentation.refusals import refusal_text
from decisions.identity.principals import LOCAL, admin_principal, ensure_workspace
from runs.models import BEING_SENT, DeliveryStatus, Webhook, WebhookDelivery
from runs.webhooks import services

_TONES = {"pending": "queued", "delivered": "succeeded", "failed": "failed"}
_NAME = r"\A[\w .@:+-]{1,128}\Z"


class WebhookForm(forms.Form):
    """The form of a new webhook. Operators have local trust: private addresses are allowed."""

    url = forms.CharField(
        max_length=2048,
        widget=UnfoldAdminTextInputWidget,
        help_text=_("http or https; receives a POST."),
    )
    name = forms.RegexField(
        _NAME, widget=UnfoldAdminTextInputWidget, help_text=_("Identifies the webhook in lists.")
    )
    workspace = forms.RegexField(_NAME, widget=UnfoldAdminTextInputWidget, initial=LOCAL)
    every_run = forms.BooleanField(
        required=False,
        initial=True,
        help_text=_("Report every run; otherwise only runs with its id in options.webhookId."),
    )
    confirmations = forms.BooleanField(
        required=False,
        help_text=_("Also report pending confirmations, with a link that lets its reader decide."),
    )
    questions = forms.BooleanField(
        required=False,
        help_text=_("Also report the questions of runs that wait for an answer."),
    )
    confirmation_arguments = forms.BooleanField(
        required=False,
        help_text=_("Send the exact arguments of these calls too; they may hold secrets."),
    )


@admin.register(Webhook)
class WebhookAdmin(SecretCreationAdmin):
    """Webhooks, newest first. Secrets are never shown."""

    list_title = _("Webhooks")
    list_empty = _("A webhook is called when runs end or wait for a person. Create one here.")
    list_display = (
        "name",
        "display_state",
        "display_id",
        "url",
        "display_events",
        "display_created_at",
    )
    list_filter = (WorkspaceFilter,)
    ordering = ("-created_at", "-id")
    search_fields = ("id", "name")
    search_help_text = _("A name or an id")
    actions = ("enable_selected", "disable_selected")
    creation_form, creation_title = WebhookForm, _("New webhook")
    creation_template = "admin/runs/webhook/new.html"
    change_list_template = "admin/runs/webhook/list.html"
    fields = (
        "name",
        "display_state",
        "display_id",
        "url",
        "trust",
        "display_events",
        "created_by",
        "display_created_at",
        "disabled_because",
    )
    readonly_fields = fields

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, with the one that creates a webhook."""
        view = self.admin_site.admin_view(never_cache(self.create_view))
        return [path("new/", view, name="runs_webhook_new"), *super().get_urls()]

    def create(self, request: HttpRequest, data: dict[str, Any]) -> str:
        """Create a webhook and return its secret."""
        workspace = ensure_workspace(data["workspace"])
        operator = admin_principal(
            request.user.get_username(), tenant_id=workspace.tenant_id, workspace_id=workspace.id
        )
        webhook = services.create_webhook(
            principal=operator,
            url=data["url"],
            name=data["name"],
            every_run=data["every_run"],
            confirmations=data["confirmations"],
            questions=data["questions"],
            confirmation_arguments=data["confirmation_arguments"],
        )
        return str(webhook["secret"])

    @admin.action(description=_("Enable selected webhooks"), permissions=["operate"])
    def enable_selected(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> None:
        """Enable the selected webhooks."""
        self._each(request, queryset, services.enable_webhook, "enabled")

    @admin.action(description=_("Disable selected webhooks"), permissions=["operate"])
    def disable_selected(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> None:
        """Disable the selected webhooks."""
        self._each(request, queryset, services.disable_webhook, "disabled")

    def _each(
        self,
        request: HttpRequest,
        hooks: QuerySet[Webhook],
        service: Callable[..., Any],
        state: str,
    ) -> None:
        for hook in rows_of_action(request, hooks):
            service(principal=operator_of(request, hook), webhook_id=hook.id)
            self.message_user(request, f"{hook.name} is {state}.", messages.SUCCESS)

    display_state = column(
        _("State"),
        lambda hook: (
            pill("disabled", "canceled") if hook.disabled_at else pill("enabled", "succeeded")
        ),
    )
    display_id = column(_("Id"), lambda hook: code(hook.id))

    @admin.display(description=_("Reports"))
    def display_events(self, hook: Webhook) -> str:
        """Return what the webhook reports."""
        runs = _("every run") if hook.every_run else _("runs that name it")
        parts = [
            runs,
            _("pending confirmations") if hook.tells_confirmations else "",
            _("questions") if hook.tells_questions else "",
        ]
        return ", ".join(str(part) for part in parts if part)

    display_created_at = column(_("Created"), lambda hook: moment(hook.created_at))


class DeliveryStatusFilter(ChoiceFilter):
    """Filter by the status of the delivery."""

    title = parameter_name = field = "status"
    options = DeliveryStatus.choices


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    """Webhook deliveries, newest first, with their last and next attempts."""

    list_title = _("Webhook deliveries")
    list_empty = _("Each event that is sent to a webhook adds a row.")
    list_display = (
        "display_status",
        "display_subject",
        "display_webhook",
        "event",
        "attempts",
        "status_code",
        "error",
        "display_tried_at",
        "display_next_try_at",
    )
    list_display_links = None
    list_filter = (DeliveryStatusFilter,)
    ordering = ("-created_at", "-id")
    search_fields = ("id", "run__id", "webhook__id")
    search_help_text = _("msg_…, run_… or hook_… id")
    actions = ("replay_selected",)
    fields = ("display_id", *list_display, "display_created_at")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookDelivery]:
        """Return deliveries with their webhooks."""
        rows: QuerySet[WebhookDelivery] = super().get_queryset(request)
        return rows.select_related("webhook")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[WebhookDelivery], search_term: str
    ) -> tuple[QuerySet[WebhookDelivery], bool]:
        """Find deliveries by their own id, their run's or their webhook's."""
        term = search_term.strip()
        field = {"run": "run_id", "hook": "webhook_id"}.get(term.partition("_")[0], "id")
        return (queryset.filter(**{field: term}) if term else queryset), False

    @admin.action(description=_("Replay selected deliveries"), permissions=["operate"])
    def replay_selected(self, request: HttpRequest, queryset: QuerySet[WebhookDelivery]) -> None:
        """Send the selected messages again."""
        for row in rows_of_action(request, queryset):
            try:
                services.replay_delivery(
                    principal=operator_of(request, row.webhook),
                    webhook_id=row.webhook_id,
                    delivery_id=row.id,
                )
            except Refused as refusal:
                message = _("%(id)s is not replayed: %(why)s") % {
                    "id": row.id,
                    "why": refusal_text(refusal.message),
                }
                self.message_user(request, message, messages.ERROR)
            else:
                self.message_user(
                    request, _("%(id)s is sent again.") % {"id": row.id}, messages.SUCCESS
                )

    display_status = column(_("Status"), lambda row: pill(row.status, _TONES[row.status]))
    display_id = column(_("Message"), lambda row: code(row.id))

    @admin.display(description=_("About"))
    def display_subject(self, row: WebhookDelivery) -> SafeString:
        """Return the run or the decision that the message is about, as a link."""
        if row.run_id:
            return link_to("run", row.run_id)
        return link_to("decision", str(row.decision_id), label=f"decision {row.decision_id}")

    display_webhook = column(
        _("Webhook"), lambda row: link_to("webhook", row.webhook_id, label=row.webhook.name)
    )
    display_tried_at = column(_("Last attempt"), lambda row: moment(row.tried_at))

    @admin.display(description=_("Next attempt"))
    def display_next_try_at(self, row: WebhookDelivery) -> SafeString | str:
        """Return when a pending message is sent next."""
        if row.status != DeliveryStatus.PENDING:
            return "–"
        return "now" if row.next_try_at == BEING_SENT else moment(row.next_try_at)

    display_created_at = column(_("Created"), lambda row: moment(row.created_at))
