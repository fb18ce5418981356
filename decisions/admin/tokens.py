"""Admin pages of bearer tokens: the list, one token, its creation and revocation.

The secret is shown once, when the token is created; the database has only its digest.
"""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from decisions.admin.acting import actor_of
from decisions.admin.columns import column
from decisions.admin.filters import ChoiceFilter, WorkspaceFilter, workspace_label
from decisions.admin.secret_creation import SecretCreationAdmin
from decisions.foundation.errors import Refused
from decisions.foundation.presentation.formatting import shorten
from decisions.foundation.presentation.html import admin_url, code, link_to, moment, pill
from decisions.foundation.presentation.refusals import refusal_text
from decisions.foundation.presentation.words import word
from decisions.identity.principals import (
    DEFAULT_SCOPES,
    LOCAL,
    SCOPES,
    TrustLevel,
    create_token,
    default_scopes,
    valid_token,
)
from decisions.identity.tokens import (
    EXPIRY_WARNING,
    list_expiring_tokens,
    parse_lifetime,
    revoke_token,
    set_token_users,
    token_state,
)
from decisions.models import Token

_ACTS_FOR = "decisions_token_acts_for"
_STATE_TONES = {
    "active": "succeeded",
    "expires soon": "waiting",
    "expired": "failed",
    "revoked": "canceled",
}
_NAME = r"\A[\w .@:+-]{1,128}\Z"


def acts_for_field() -> forms.CharField:
    """Return the form field for the user ids that a token may act for."""
    return forms.CharField(
        label=_("Acts for"),
        required=False,
        max_length=10_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text=_("The user ids, one per line. Empty: every user of the workspace."),
    )


class ActsForForm(forms.Form):
    """The form for the users that an existing token may act for."""

    acts_for = acts_for_field()


class TokenForm(forms.Form):
    """The form of a new token.

    Tenant, workspace and users are created if they do not exist, as in `manage.py create_token`.
    """

    name = forms.RegexField(
        _NAME,
        widget=UnfoldAdminTextInputWidget,
        help_text=_("Identifies the token in lists and in the audit log."),
    )
    tenant = forms.RegexField(_NAME, widget=UnfoldAdminTextInputWidget, initial=LOCAL)
    workspace = forms.RegexField(_NAME, widget=UnfoldAdminTextInputWidget, initial=LOCAL)
    acts_for = acts_for_field()
    trust = forms.ChoiceField(
        choices=[("remote", "remote"), ("local", "local")],
        widget=UnfoldAdminSelectWidget,
        help_text=_(
            "local applies only to calls from this machine; remote reaches public addresses."
        ),
    )
    lifetime = forms.CharField(
        label=_("Expires after"),
        required=False,
        max_length=16,
        initial="90d",
        widget=UnfoldAdminTextInputWidget,
        help_text=_("Days, hours or minutes: 90d, 12h, 30m. Empty: it never expires."),
    )
    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in sorted(SCOPES)],
        initial=sorted(DEFAULT_SCOPES),
        widget=forms.CheckboxSelectMultiple,
    )


class TokenStateFilter(ChoiceFilter):
    """Filter for active, expired or revoked tokens."""

    title = _("state")
    parameter_name = "state"
    options = (("active", "Active"), ("expired", "Expired"), ("revoked", "Revoked"))

    def condition(self, value: str) -> Q:
        """Return the condition of the tokens with a state."""
        if value == "active":
            return valid_token()
        is_revoked = Q(revoked_at__isnull=False)
        return is_revoked if value == "revoked" else ~valid_token() & ~is_revoked


@admin.register(Token)
class TokenAdmin(SecretCreationAdmin):
    """Tokens, newest first. Digests are never shown."""

    list_title = _("Tokens")
    list_empty = _("A token lets an agent or a program call the API. Create one here.")
    list_display = (
        "name",
        "display_state",
        "display_id",
        "display_workspace",
        "display_acts_for",
        "trust",
        "display_scopes",
        "display_expires_at",
        "display_created_at",
    )
    list_filter = (TokenStateFilter, WorkspaceFilter)
    ordering = ("-created_at", "-id")
    search_fields = ("name", "id")
    search_help_text = _("A name or an id")
    actions = ("revoke_selected",)
    creation_form, creation_title = TokenForm, _("New token")
    creation_template = "admin/decisions/token/new.html"
    change_form_template = "admin/decisions/token/page.html"
    change_list_template = "admin/decisions/token/list.html"
    list_before_template = "admin/decisions/token/expiring.html"
    fields = (*list_display, "display_revoked_at")
    readonly_fields = fields

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the tokens that expire soon, which are shown above the list."""
        context = {"expiring": list_expiring_tokens(), "warning_days": EXPIRY_WARNING.days}
        return super().list_context(request) | context

    def get_queryset(self, request: HttpRequest) -> QuerySet[Token]:
        """Return tokens with their workspaces and tenants."""
        tokens: QuerySet[Token] = super().get_queryset(request)
        return tokens.select_related("workspace__tenant")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may revoke tokens and change whom they may act for."""
        return request.user.has_perm("decisions.change_token")

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, with those that create, revoke and change a token."""
        wrap = self.admin_site.admin_view
        return [
            path("new/", wrap(never_cache(self.create_view)), name="decisions_token_new"),
            path("<str:token_id>/revoke/", wrap(self.revoke_view), name="decisions_token_revoke"),
            path("<str:token_id>/acts_for/", wrap(self.acts_for_view), name=_ACTS_FOR),
            *super().get_urls(),
        ]

    def create(self, request: HttpRequest, data: dict[str, Any]) -> str:
        """Create a token and return its secret."""
        return create_token(
            name=data["name"],
            workspace=data["workspace"],
            tenant=data["tenant"],
            users=data["acts_for"].splitlines(),
            scopes=frozenset(data["scopes"]),
            trust=cast(TrustLevel, data["trust"]),
            lifetime=parse_lifetime(data["lifetime"]) if data["lifetime"] else None,
            actor=actor_of(request),
        )

    def revoke_view(self, request: HttpRequest, token_id: str) -> HttpResponse:
        """Revoke a token and redirect to the list."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        self._revoke(request, [token_id])
        return redirect(reverse("admin:decisions_token_changelist"))

    def acts_for_view(self, request: HttpRequest, token_id: str) -> HttpResponse:
        """Set the users that a token may act for and redirect to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        form = ActsForForm(request.POST)
        users = form.cleaned_data["acts_for"].splitlines() if form.is_valid() else ["\0"]
        actor = actor_of(request)
        try:
            changed = set_token_users(token_id=token_id, users=users, actor=actor)
        except Refused as refusal:
            self.message_user(request, refusal_text(refusal.message), messages.ERROR)
        else:
            text = _("The change applies from the token's next call on.")
            if changed:
                self.message_user(request, text, messages.SUCCESS)
            else:
                self.message_user(request, _("Nothing was changed."), messages.WARNING)
        return redirect(admin_url("token", token_id) or reverse("admin:decisions_token_changelist"))

    @admin.action(description=_("Revoke selected tokens"), permissions=["revoke"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[Token]) -> None:
        """Revoke the selected tokens, at most 100."""
        self._revoke(request, list(queryset.values_list("id", flat=True)[:100]))

    def _revoke(self, request: HttpRequest, token_ids: list[str]) -> None:
        actor = actor_of(request)
        revoked = sum(revoke_token(token_id=token_id, actor=actor) for token_id in token_ids)
        level = messages.SUCCESS if revoked else messages.WARNING
        rest = len(token_ids) - revoked
        text = ngettext("%(count)s token revoked.", "%(count)s tokens revoked.", revoked) % {
            "count": revoked
        }
        if rest:
            text += " " + _("%(count)s already revoked.") % {"count": rest}
        self.message_user(request, text, level)

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return the form and the button for users who may revoke the token."""
        context: dict[str, Any] = {"may_revoke": self.has_revoke_permission(request)}
        token = Token.objects.filter(id=object_id).first()
        if token is not None:
            context["acts_for"] = ActsForForm(initial={"acts_for": "\n".join(token.acts_for)})
        return context

    @admin.display(description=_("State"))
    def display_state(self, token: Token) -> SafeString:
        """Return whether the token is active, expires soon, has expired or is revoked."""
        state = token_state(token)
        return pill(state, _STATE_TONES[state])

    display_id = column(_("Id"), lambda token: code(token.id))
    display_workspace = column(
        _("Workspace"),
        lambda token: link_to(
            "workspace", token.workspace_id, label=workspace_label(token.workspace)
        ),
    )
    display_acts_for = column(
        _("Acts for"), lambda token: shorten(", ".join(token.acts_for), 60) or str(_("any user"))
    )

    @admin.display(description=_("Scopes"))
    def display_scopes(self, token: Token) -> SafeString:
        """Return the scopes; `default` for the default ones."""
        if set(token.scopes) == default_scopes(token.acts_for):
            return format_html(
                '<span title="{}">{}</span>', ", ".join(token.scopes), word("default")
            )
        chips = format_html_join(
            " ", '<span class="cty-chip">{}</span>', ((one,) for one in token.scopes)
        )
        return format_html('<span class="cty-chips">{}</span>', chips)

    display_expires_at = column(_("Expires"), lambda token: moment(token.expires_at))
    display_created_at = column(_("Created"), lambda token: moment(token.created_at))
    display_revoked_at = column(_("Revoked"), lambda token: moment(token.revoked_at))
