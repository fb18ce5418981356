"""The pages that submit a run: the choice of a template, and the form of its inputs.

The form submits by the same service as the REST API, as the operator, in a chosen workspace. A run
that is submitted again keeps the workspace and the trust level of the first one.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from decisions.admin.acting import operator_of
from decisions.admin.filters import workspace_label
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.foundation.errors import InvalidInput, Refused, SessionNotFound, TemplateNotFound
from decisions.foundation.presentation.refusals import refusal_text
from decisions.foundation.validation.json_input import load_json
from decisions.identity.authority import acting_on
from decisions.identity.principals import (
    Principal,
    admin_principal,
    ensure_workspace,
)
from decisions.models import Workspace
from runs.admin.new_run.fields import FormFields, errors_by_field
from runs.admin.new_run.options import (
    MAX_SECONDS,
    FormOptions,
    options_of_run,
    posted_options,
    webhook_choices,
)
from runs.admin.new_run.posted import PostedInputs
from runs.admin.new_run.prefill import inputs_of_run, without_secrets
from runs.admin.new_run.shapes import shape_of
from runs.admin.new_run.words import explained
from runs.admin.runs.columns import run_page, template_name
from runs.models import Run
from runs.submission.submit import submit_run
from runs.task_templates.base import TaskTemplate
from runs.task_templates.registry import find_template, list_templates

WORKSPACES_SHOWN = 100
# The fields of options by the path of their errors in a refusal.
_OPTION_ERRORS = {"session": "sessionId", "webhook": "options.webhookId"}
_KEY = r"0123456789abcdef"


@dataclass(slots=True)
class _Form:
    """What the form shows.

    Attributes:
        key: the idempotency key: a repeated request submits no second run.
        source: the run that is submitted again.
    """

    template: TaskTemplate
    source: Run | None
    workspace_id: str
    key: str
    inputs: Mapping[str, Any]
    options: FormOptions
    errors: dict[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


class NewRunViews(ReadOnlyAdmin):
    """The views of the form; a base of `RunAdmin`."""

    def new_run_urls(self, wrap: Callable[[Any], Any]) -> list[URLPattern]:
        """Return the URLs of the pages."""
        return [
            path("new/", wrap(self.choose_view), name="runs_run_choose"),
            path("new/<str:template_id>/", wrap(self.new_run_view), name="runs_run_new"),
        ]

    def choose_view(self, request: HttpRequest) -> HttpResponse:
        """Show the templates that can be run."""
        self.require_operate_permission(request)
        listed = [
            {
                "id": template.template_id,
                "name": template_name(template.template_id),
                "description": explained(template.description),
            }
            for template in list_templates()
            if template.is_listed
        ]
        context = {"templates": listed}
        return self.show(request, "admin/runs/new_run/choose.html", _("New run"), context)

    def new_run_view(self, request: HttpRequest, template_id: str) -> HttpResponse:
        """Show the form of a template, filled in from the run `from`; on POST submit the run."""
        self.require_operate_permission(request)
        try:
            template = find_template(template_id)
        except TemplateNotFound as refusal:
            raise Http404(refusal.message) from None
        source = self._source(request, template)
        if request.method == "POST":
            form = _posted_form(request, template, source)
            if (run_id := _submit(request, form)) is not None:
                messages.success(request, _("%(run)s is submitted.") % {"run": run_id})
                return redirect(run_page(run_id))
        else:
            form = _first_form(template, source)
        title = _("Run again: %s") if source else _("New run: %s")
        title = title % template_name(template_id)
        context = _form_context(request, form)
        return self.show(request, "admin/runs/new_run/form.html", title, context)

    def _source(self, request: HttpRequest, template: TaskTemplate) -> Run | None:
        run_id = (request.POST if request.method == "POST" else request.GET).get("from", "")
        if not run_id:
            return None
        run = self.row_or_404(request, Run.objects.all(), run_id[:64])
        if run.template_id != template.template_id:
            raise Http404(f"{run.id} is no run of {template.template_id}.")
        return run


def again_url(run: Run) -> str | None:
    """Return the URL of the form that submits a run again; None if its template cannot be run."""
    try:
        template = find_template(run.template_id)
    except TemplateNotFound:
        return None
    return f"{reverse('admin:runs_run_new', args=[template.template_id])}?from={run.id}"


def _first_form(template: TaskTemplate, source: Run | None) -> _Form:
    key = f"form-{secrets.token_hex(12)}"
    if source is None:
        return _Form(template, None, ensure_workspace().id, key, {}, FormOptions())
    inputs, options = inputs_of_run(template, source), options_of_run(template, source)
    return _Form(template, source, source.workspace_id, key, inputs, options)


def _posted_form(request: HttpRequest, template: TaskTemplate, source: Run | None) -> _Form:
    posted = PostedInputs(shape_of(template.inputs_schema), request.POST.dict())
    workspace_id = source.workspace_id if source else request.POST.get("workspace", "")[:64]
    return _Form(
        template,
        source,
        workspace_id,
        key=_posted_key(request),
        inputs=posted.value,
        options=posted_options(template, source, request.POST.dict()),
        errors=posted.errors,
        texts=posted.texts,
    )


def _posted_key(request: HttpRequest) -> str:
    key = request.POST.get("key", "")
    is_ours = key.startswith("form-") and not key.removeprefix("form-").strip(_KEY)
    return key[:64] if is_ours and len(key) > 20 else f"form-{secrets.token_hex(12)}"


def _submit(request: HttpRequest, form: _Form) -> str | None:
    """Submit the form's run and return its id; None if it was refused, with the form's errors."""
    options = {**form.options.for_submit(), "mode": "async", "idempotencyKey": form.key}
    if form.errors or form.options.errors:
        return None
    try:
        principal = _principal(request, form)
        load_json(orjson.dumps(form.inputs))  # the limits of the REST API
        submitted = submit_run(
            principal=principal,
            template_id=form.template.template_id,
            inputs=form.inputs,
            session_id=form.options.session or None,
            options=options,
            again_of=form.source.id if form.source else None,
        )
    except SessionNotFound as refusal:
        form.errors = {"sessionId": refusal_text(refusal.message)}
    except Refused as refusal:
        form.errors = errors_by_field(refusal.message, refusal.details)
    except (TypeError, ValueError):  # orjson: a surrogate, or an integer beyond 64 bits
        form.errors = {"": _("A value cannot be stored: an integer beyond 64 bits, or no Unicode.")}
    else:
        return submitted.run_id
    return None


def _principal(request: HttpRequest, form: _Form) -> Principal:
    if form.source is not None:
        return acting_on(operator_of(request, form.source), form.source)
    workspace = Workspace.objects.filter(id=form.workspace_id).first()
    if workspace is None:
        raise InvalidInput(_("There is no such workspace."))
    username = request.user.get_username()
    return admin_principal(username, tenant_id=workspace.tenant_id, workspace_id=workspace.id)


def _form_context(request: HttpRequest, form: _Form) -> dict[str, Any]:
    errors, options = dict(form.errors), form.options
    for name, key in _OPTION_ERRORS.items():
        if key in errors:
            options.errors[name] = errors.pop(key)
    shape = shape_of(form.template.inputs_schema)
    shown = without_secrets(form.template, form.inputs)
    fields = FormFields(shape, shown, errors, form.texts, form.template.template_id)
    rows = Workspace.objects.select_related("tenant").order_by("tenant__name", "name")
    workspaces = list(rows[:WORKSPACES_SHOWN])
    return {
        "form": form,
        "description": explained(form.template.description),
        "fields": [one for one in fields.fields if one.is_required],
        "more_fields": [one for one in fields.fields if not one.is_required],
        "other_errors": fields.other_errors,
        "has_errors": bool(form.errors or options.errors),
        "options": options,
        "max_seconds": MAX_SECONDS,
        "webhooks": _webhooks(request, form, is_only=len(workspaces) == 1),
        "workspaces": [{"id": one.id, "label": workspace_label(one)} for one in workspaces],
        "holds_secrets": form.source is not None and form.source.holds_secrets,
    }


def _webhooks(request: HttpRequest, form: _Form, *, is_only: bool) -> list[dict[str, str]]:
    """Return the webhooks to choose from, for users who may view them."""
    if not request.user.has_perm("runs.view_webhook"):
        return []
    workspace_id = form.workspace_id if form.source or is_only else None
    return webhook_choices(workspace_id, form.options.webhook)
