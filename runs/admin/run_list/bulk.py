"""Actions on many runs of the list: cancel, retry, label, export. Each shows what was done with
every run, and what was not, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from decisions.admin.acting import operator_of
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.foundation.errors import InvalidInput, Refused
from decisions.foundation.presentation.refusals import refusal_text
from decisions.foundation.presentation.words import word
from decisions.identity.authority import acting_on
from decisions.identity.principals import Principal
from runs.admin.run_list.export import export_runs
from runs.admin.runs.columns import run_page
from runs.models import Run
from runs.search.labels import check_labels, parse_labels
from runs.submission.cancel import cancel_run
from runs.submission.labels import label_run
from runs.submission.retry import retry_run

BULK_MAX = 200  # runs that one action changes: a request handles them one after the other


@dataclass(frozen=True, slots=True)
class RunResult:
    """What an action did with a run.

    Attributes:
        level: of `django.contrib.messages`: SUCCESS if it was done, INFO if nothing was left to do.
        shown_id: the run to show next, such as the new run of a retry.
    """

    run: Run
    level: int
    text: str
    shown_id: str

    @property
    def url(self) -> str:
        """The page of the run to show next."""
        return run_page(self.shown_id)


Action = Callable[[Principal, Run], RunResult]


def operator_on(request: HttpRequest, run: Run) -> Principal:
    """Return the acting operator; a retried run keeps the trust level of its caller."""
    return acting_on(operator_of(request, run), run)


def cancel_one(operator: Principal, run: Run) -> RunResult:
    """Cancel a run."""
    try:
        result = cancel_run(principal=operator, run_id=run.id, reason="Canceled in the admin site.")
    except Refused as refusal:
        if run.ended_at is None:
            return RunResult(
                run, messages.ERROR, f"{run.id}: {refusal_text(refusal.message)}", run.id
            )
        # hidden from the API: it ended long ago
        return RunResult(
            run,
            messages.WARNING,
            _("%(id)s has already ended: %(status)s.") % {"id": run.id, "status": word(run.status)},
            run.id,
        )
    if result["success"]:
        return RunResult(run, messages.SUCCESS, _("%(id)s is canceled.") % {"id": run.id}, run.id)
    return RunResult(run, messages.WARNING, f"{run.id}: {result['reason']}", run.id)


def retry_one(operator: Principal, run: Run) -> RunResult:
    """Submit a run again as a new run."""
    try:
        retry = retry_run(principal=operator, run_id=run.id, include_past_ttl=True)
    except Refused as refusal:
        text = _("%(id)s cannot be retried: %(why)s") % {
            "id": run.id,
            "why": refusal_text(refusal.message),
        }
        return RunResult(run, messages.ERROR, text, run.id)
    if retry.deduplicated:
        text = _("%(id)s was already retried as %(retry)s.") % {"id": run.id, "retry": retry.run_id}
        return RunResult(run, messages.INFO, text, retry.run_id)
    text = _("%(id)s is retried as %(retry)s. It reuses the outputs of the succeeded steps.") % {
        "id": run.id,
        "retry": retry.run_id,
    }
    return RunResult(run, messages.SUCCESS, text, retry.run_id)


def labelling(add: Mapping[str, str], remove: frozenset[str]) -> Action:
    """Return the action that adds labels to a run and removes others."""

    def label_one(operator: Principal, run: Run) -> RunResult:
        try:
            is_changed = label_run(principal=operator, run=run, add=add, remove=remove)
        except Refused as refusal:
            return RunResult(run, messages.ERROR, refusal_text(refusal.message), run.id)
        if is_changed:
            return RunResult(run, messages.SUCCESS, gettext("The labels are changed."), run.id)
        return RunResult(run, messages.INFO, gettext("The run has these labels already."), run.id)

    return label_one


def parse_changes(text: str) -> tuple[dict[str, str], frozenset[str]]:
    """Return the labels to add and the names to remove, from `env=prod, -team`.

    Raises:
        InvalidInput: A label is malformed, or there is none.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    remove = frozenset(part[1:].strip() for part in parts if part.startswith("-"))
    added = ",".join(part for part in parts if not part.startswith("-"))
    if not parts:
        raise InvalidInput("label: write name=value, or -name to remove one.")
    check_labels(dict.fromkeys(remove, "removed"), where="label")
    return (parse_labels(added) if added else {}), remove


class BulkActions(ReadOnlyAdmin):
    """The list actions of `RunAdmin`."""

    @admin.action(description=_("Cancel"), permissions=["operate"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> Any:
        """Cancel the selected runs; those that have ended stay as they are."""
        return self._perform_all(request, queryset, cancel_one, _("Cancel runs"))

    @admin.action(description=_("Retry"), permissions=["operate"])
    def retry_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> Any:
        """Submit the selected runs again; twice is the same as once."""
        return self._perform_all(request, queryset, retry_one, _("Retry runs"))

    @admin.action(description=_("Label"), permissions=["operate"])
    def label_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> Any:
        """Add and remove labels of the selected runs."""
        try:
            add, remove = parse_changes(request.POST.get("label", ""))
        except InvalidInput as refusal:
            messages.error(
                request, f"{refusal_text(refusal.message)} " + gettext("Nothing was changed.")
            )
            return redirect(request.get_full_path())
        return self._perform_all(request, queryset, labelling(add, remove), _("Label runs"))

    @admin.action(description=_("Export"), permissions=["view"])
    def export_selected(
        self, request: HttpRequest, queryset: QuerySet[Run]
    ) -> StreamingHttpResponse:
        """Return the selected runs as a CSV file."""
        return export_runs(queryset)

    def _perform_all(
        self, request: HttpRequest, queryset: QuerySet[Run], action: Action, title: Any
    ) -> TemplateResponse:
        """Perform an action on at most BULK_MAX runs and show what came of each. To send the form
        again is safe: every action does nothing the second time.
        """
        runs = list(queryset[: BULK_MAX + 1])
        results = [action(operator_on(request, run), run) for run in runs[:BULK_MAX]]
        groups = [
            (level, name, [one for one in results if one.level == level])
            for level, name in (
                (messages.SUCCESS, gettext("Done")),
                (messages.INFO, gettext("Already so")),
                (messages.WARNING, gettext("Not done")),
                (messages.ERROR, gettext("Refused")),
            )
        ]
        context = {
            "groups": [
                {"name": name, "tone": _TONES[level], "results": rows}
                for level, name, rows in groups
                if rows
            ],
            "is_cut": len(runs) > BULK_MAX,
            "bulk_max": BULK_MAX,
            "back": request.get_full_path(),
        }
        return self.show(request, "admin/runs/run_list/results.html", title, context)


_TONES = {
    messages.SUCCESS: "succeeded",
    messages.INFO: "queued",
    messages.WARNING: "warning",
    messages.ERROR: "failed",
}
