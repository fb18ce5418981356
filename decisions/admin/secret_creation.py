"""The page that makes what has a secret: its form, and once it is made the secret, this once."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from decisions.admin.read_only import ReadOnlyAdmin
from decisions.errors import Refused


class MakingAdmin(ReadOnlyAdmin):
    """A read-only admin whose rows are made on a page of their own, and so by whoever may."""

    make_form: type[forms.Form]
    make_title: str
    make_template: str

    def has_make_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may make one."""
        named = self.opts
        return request.user.has_perm(f"{named.app_label}.add_{named.model_name}")

    def make(self, request: HttpRequest, given: dict[str, Any]) -> str:
        """Make one of what the form gave and return its secret.

        Raises:
            Refused: It cannot be made; the form says why.
        """
        raise NotImplementedError

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with the way to a new one for whoever may."""
        told = {"may_make": self.has_make_permission(request), **(extra_context or {})}
        answer: HttpResponse = super().changelist_view(request, told)
        return answer

    def make_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form; on POST make one and show its secret, this once."""
        if not self.has_make_permission(request):
            raise PermissionDenied
        form = self.make_form(request.POST or None)
        secret = None
        if request.method == "POST" and form.is_valid():
            try:
                secret = self.make(request, form.cleaned_data)
            except Refused as refusal:
                form.add_error(None, refusal.message)
        changelist = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        context = {
            **self.admin_site.each_context(request),
            "model_admin": self,
            "form": form,
            "title": self.make_title,
            "secret": secret,
            "list_url": reverse(changelist),
        }
        return TemplateResponse(request, self.make_template, context)
