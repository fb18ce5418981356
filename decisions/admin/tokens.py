"""Bearer tokens in the admin site: see them, make one, end one. A token itself is shown once and
never again.
"""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import SimpleListFilter
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from decisions.admin.filters import WorkspaceFilter, workspace_label
from decisions.admin.read_only import plain_id
from decisions.admin.secret_creation import MakingAdmin
from decisions.errors import Refused
from decisions.identity.principals import (
    DEFAULT_SCOPES,
    LOCAL,
    SCOPES,
    TrustLevel,
    create_token,
    default_scopes,
)
from decisions.identity.tokens import revoke_token, set_token_users
from decisions.models import Token
from decisions.presentation.formatting import shorten
from decisions.presentation.html import admin_url, code, link_to, moment, pill

_ACTS_FOR = "decisions_token_acts_for"
_NAME = r"\A[\w .@:+-]{1,128}\Z"


def acts_for_field() -> forms.CharField:
    """Return the field that names users."""
    return forms.CharField(
        label="Acts for",
        required=False,
        max_length=10_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="The user ids that it may act for, one a line; empty: any user of the workspace.",
    )


class ActsForForm(forms.Form):
    """Whom an existing token may act for."""

    acts_for = acts_for_field()


class TokenForm(forms.Form):
    """What a new token is and may do; tenant, workspace and users are made when new, as `manage.py
    create_token` does.
    """

    name = forms.RegexField(
        _NAME, widget=UnfoldAdminTextInputWidget, help_text="To tell it from others later."
    )
    tenant = forms.RegexField(_NAME, widget=UnfoldAdminTextInputWidget, initial=LOCAL)
    workspace = forms.RegexField(_NAME, widget=UnfoldAdminTextInputWidget, initial=LOCAL)
    acts_for = acts_for_field()
    trust = forms.ChoiceField(
        choices=[("remote", "remote"), ("local", "local")],
        widget=UnfoldAdminSelectWidget,
        help_text="local counts only for calls from this machine; remote reaches public addresses.",
    )
    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in sorted(SCOPES)],
        initial=sorted(DEFAULT_SCOPES),
        widget=forms.CheckboxSelectMultiple,
    )


class StateFilter(SimpleListFilter):
    """Tokens that work, or those that were revoked."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return both."""
        return [("active", "Active"), ("revoked", "Revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one of them."""
        if self.value() is None:
            return queryset
        return queryset.filter(revoked_at__isnull=self.value() == "active")


@admin.register(Token)
class TokenAdmin(MakingAdmin):
    """Who holds a key, and to what. Digests are never shown."""

    list_display = ("name", "state", "shown_id", "place", "for_whom", "trust", "may", "made")
    list_filter = (StateFilter, WorkspaceFilter)
    ordering = ("-created_at", "-id")
    search_fields = ("name", "id")
    search_help_text = "A name or an id"
    actions = ("revoke_selected",)
    make_form, make_title = TokenForm, "New token"
    make_template = "admin/decisions/token/new.html"
    change_form_template = "admin/decisions/token/page.html"
    change_list_template = "admin/decisions/token/list.html"
    fields = ("name", "state", "shown_id", "place", "for_whom", "trust", "may", "made", "ended")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Token]:
        """Return tokens with their places."""
        tokens: QuerySet[Token] = super().get_queryset(request)
        return tokens.select_related("workspace__tenant")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may end tokens."""
        return request.user.has_perm("decisions.change_token")

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, and those of making and ending a token before them."""
        wrap = self.admin_site.admin_view
        return [
            path("new/", wrap(never_cache(self.make_view)), name="decisions_token_new"),
            path("<str:token_id>/revoke/", wrap(self.revoke_view), name="decisions_token_revoke"),
            path("<str:token_id>/acts_for/", wrap(self.acts_for_view), name=_ACTS_FOR),
            *super().get_urls(),
        ]

    def make(self, request: HttpRequest, given: dict[str, Any]) -> str:
        """Make a token and return it."""
        return create_token(
            name=given["name"],
            workspace=given["workspace"],
            tenant=given["tenant"],
            users=given["acts_for"].splitlines(),
            scopes=frozenset(given["scopes"]),
            trust=cast(TrustLevel, given["trust"]),
            actor=f"admin:{request.user.get_username()}",
        )

    def revoke_view(self, request: HttpRequest, token_id: str) -> HttpResponse:
        """End one token and go back to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        self._revoke(request, [token_id])
        return redirect(reverse("admin:decisions_token_changelist"))

    def acts_for_view(self, request: HttpRequest, token_id: str) -> HttpResponse:
        """Name the users that one token may act for and go back to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        form = ActsForForm(request.POST)
        users = form.cleaned_data["acts_for"].splitlines() if form.is_valid() else ["\0"]
        actor = f"admin:{request.user.get_username()}"
        try:
            done = set_token_users(token_id=token_id, users=users, actor=actor)
        except Refused as refusal:
            self.message_user(request, refusal.message, messages.ERROR)
        else:
            told = "From its next call on it may act for these." if done else "Nothing was changed."
            self.message_user(request, told, messages.SUCCESS if done else messages.WARNING)
        return redirect(admin_url("token", token_id) or reverse("admin:decisions_token_changelist"))

    @admin.action(description="Revoke selected tokens", permissions=["revoke"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[Token]) -> None:
        """End the tokens of the ticked rows."""
        self._revoke(request, list(queryset.values_list("id", flat=True)[:100]))

    def _revoke(self, request: HttpRequest, token_ids: list[str]) -> None:
        actor = f"admin:{request.user.get_username()}"
        ended = sum(revoke_token(token_id=token_id, actor=actor) for token_id in token_ids)
        level = messages.SUCCESS if ended else messages.WARNING
        rest = len(token_ids) - ended
        told = f"{ended} token{'s' if ended != 1 else ''} revoked." + (
            f" {rest} had been revoked before." if rest else ""
        )
        self.message_user(request, told, level)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a token's page, with the button that ends it for whoever may."""
        told: dict[str, Any] = {"may_revoke": self.has_revoke_permission(request)}
        token = Token.objects.filter(id=plain_id(object_id)).first()
        if token is not None:
            told["acts_for"] = ActsForForm(initial={"acts_for": "\n".join(token.acts_for)})
        return super().change_view(request, object_id, form_url, told | (extra_context or {}))

    @admin.display(description="State")
    def state(self, token: Token) -> SafeString:
        """Return whether it works."""
        return pill("revoked", "canceled") if token.revoked_at else pill("active", "succeeded")

    @admin.display(description="Id")
    def shown_id(self, token: Token) -> SafeString:
        """Return the public id, which audit rows name."""
        return code(token.id)

    @admin.display(description="Workspace")
    def place(self, token: Token) -> SafeString:
        """Return the workspace as a link."""
        return link_to("workspace", token.workspace_id, label=workspace_label(token.workspace))

    @admin.display(description="Acts for")
    def for_whom(self, token: Token) -> str:
        """Return the users it may act for, or that it may act for any."""
        return shorten(", ".join(token.acts_for), 60) or "any user"

    @admin.display(description="Scopes")
    def may(self, token: Token) -> SafeString:
        """Return the scopes, shortened to a word where they are the usual ones."""
        if set(token.scopes) == default_scopes(token.acts_for):
            return format_html('<span title="{}">{}</span>', ", ".join(token.scopes), "default")
        chips = format_html_join(
            " ", '<span class="cty-chip">{}</span>', ((one,) for one in token.scopes)
        )
        return format_html('<span class="cty-chips">{}</span>', chips)

    @admin.display(description="Made")
    def made(self, token: Token) -> SafeString:
        """Return when it was made."""
        return moment(token.created_at)

    @admin.display(description="Revoked")
    def ended(self, token: Token) -> SafeString:
        """Return when it was revoked."""
        return moment(token.revoked_at)
