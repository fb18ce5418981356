"""Base class of admins that create rows with a secret and show the secret once."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import Promise

from decisions.admin.read_only import ReadOnlyAdmin
from decisions.foundation.errors import Refused
from decisions.foundation.presentation.refusals import refusal_text


class SecretCreationAdmin(ReadOnlyAdmin):
    """A read-only admin with a separate page that creates a row and shows its secret once.

    Attributes:
        creation_form: The form of a new row.
        creation_title: The title of the page.
        creation_template: The template of the page.
    """

    creation_form: type[forms.Form]
    creation_title: str | Promise
    creation_template: str

    def create(self, request: HttpRequest, data: dict[str, Any]) -> str:
        """Create a row from the form's cleaned data and return its secret.

        Raises:
            Refused: The row cannot be created; the form shows the message.
        """
        raise NotImplementedError

    def create_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form; on POST create the row and show its secret once."""
        if not self.has_create_permission(request):
            raise PermissionDenied
        form = self.creation_form(request.POST or None)
        secret = None
        if request.method == "POST" and form.is_valid():
            try:
                secret = self.create(request, form.cleaned_data)
            except Refused as refusal:
                form.add_error(None, refusal_text(refusal.message))
        changelist = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        context = {
            **self.admin_site.each_context(request),
            "model_admin": self,
            "form": form,
            "title": self.creation_title,
            "secret": secret,
            "list_url": reverse(changelist),
        }
        return TemplateResponse(request, self.creation_template, context)
