"""The options of a run that the form offers: labels, a webhook, a time limit and a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from decisions.admin.filters import workspace_label
from decisions.foundation.errors import InvalidInput
from decisions.foundation.presentation.refusals import refusal_text
from decisions.models import Workspace
from runs.models import Run, Webhook
from runs.search.labels import parse_labels
from runs.submission.prepare import LABELS, OUTPUT_SCHEMA
from runs.task_templates.base import TaskTemplate

MAX_SECONDS = 600
WEBHOOKS_SHOWN = 100
WEBHOOK = "webhookId"


@dataclass(slots=True)
class FormOptions:
    """The options as the form shows them, and what is wrong with them, by the field's name.

    Attributes:
        labels: one `name=value` per line.
        webhook: the id of a webhook.
        kept: options of the earlier run that the form does not show.
    """

    labels: str = ""
    webhook: str = ""
    seconds: str = ""
    session: str = ""
    kept: Mapping[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def for_submit(self) -> dict[str, Any]:
        """Return the options of the submit, without those that are wrong."""
        given = {
            LABELS: self._checked_labels(),
            WEBHOOK: self.webhook,
            "timeoutMs": self._checked_timeout_ms(),
        }
        return {**self.kept, **{name: value for name, value in given.items() if value}}

    def _checked_labels(self) -> dict[str, str]:
        lines = [line.strip() for line in self.labels.splitlines()]
        try:
            return parse_labels(",".join(filter(None, lines))) if any(lines) else {}
        except InvalidInput as refusal:
            message = refusal.message.removeprefix("label").lstrip(":. ")
            self.errors["labels"] = refusal_text(message)
            return {}

    def _checked_timeout_ms(self) -> int:
        if not self.seconds:
            return 0
        try:
            seconds = float(self.seconds)
        except ValueError:
            seconds = 0.0
        if 0.001 <= seconds <= MAX_SECONDS:
            return round(seconds * 1000)
        self.errors["seconds"] = _("From 0.001 to %d seconds.") % MAX_SECONDS
        return 0

    @property
    def is_open(self) -> bool:
        """Whether the form shows them unfolded: one has a value or an error."""
        return any((self.labels, self.webhook, self.seconds, self.session, self.errors))


def options_of_run(template: TaskTemplate, run: Run | None) -> FormOptions:
    """Return the options of a run that is submitted again; empty ones without it."""
    if run is None:
        return FormOptions()
    asked = run.requested_options
    timeout_ms = asked.get("timeoutMs")
    return FormOptions(
        labels="\n".join(f"{name}={value}" for name, value in (run.labels or {}).items()),
        webhook=str(asked.get(WEBHOOK) or ""),
        seconds=f"{timeout_ms / 1000:g}" if timeout_ms else "",
        session="" if run.owns_session else run.session_id,
        kept=_kept(template, asked),
    )


def posted_options(template: TaskTemplate, run: Run | None, post: Mapping[str, str]) -> FormOptions:
    """Return the options in a posted form; `run` is the run that is submitted again."""
    earlier = options_of_run(template, run)
    return FormOptions(
        labels=post.get("labels", "").strip()[:20_000],
        webhook=post.get("webhook", earlier.webhook).strip()[:64],
        seconds=post.get("seconds", "").strip()[:20],
        session=post.get("session", "").strip()[:64],
        kept=earlier.kept,
    )


def _kept(template: TaskTemplate, asked: Mapping[str, Any]) -> dict[str, Any]:
    shown = {LABELS, WEBHOOK, "timeoutMs", "mode"}
    if OUTPUT_SCHEMA in template.inputs_schema.get("properties", {}):
        shown.add(OUTPUT_SCHEMA)  # the form has it among the inputs
    return {name: value for name, value in asked.items() if name not in shown}


def webhook_choices(workspace_id: str | None, chosen: str) -> list[dict[str, str]]:
    """Return the enabled webhooks of a workspace, or of all with their workspaces, by name; and the
    chosen one, which may be disabled or deleted.
    """
    rows = Webhook.objects.filter(disabled_at__isnull=True)
    if workspace_id is not None:
        rows = rows.filter(workspace_id=workspace_id)
    hooks = list(rows.order_by("name", "id")[:WEBHOOKS_SHOWN])
    workspaces = _workspaces_of(hooks) if workspace_id is None else {}
    choices = [
        {"id": hook.id, "label": _label(hook, workspaces.get(hook.workspace_id))} for hook in hooks
    ]
    if chosen and all(one["id"] != chosen for one in choices):
        choices.append({"id": chosen, "label": chosen})
    return choices


def _workspaces_of(hooks: list[Webhook]) -> dict[str, Workspace]:
    rows = Workspace.objects.select_related("tenant")
    return {one.id: one for one in rows.filter(id__in={hook.workspace_id for hook in hooks})}


def _label(hook: Webhook, workspace: Workspace | None) -> str:
    """Return the name, the host and the workspace; not the whole URL, which may hold a secret."""
    place = "" if workspace is None else workspace_label(workspace)
    return " · ".join(filter(None, (hook.name, urlsplit(hook.url).hostname or "", place)))
