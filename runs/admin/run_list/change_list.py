"""A page of the list of runs: its order, its rows and what its filter bar shows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.contrib.admin.views.main import PAGE_VAR
from django.db.models import QuerySet
from django.http import HttpRequest

from decisions.admin.read_only import HasNextChangeList
from decisions.foundation.presentation.formatting import duration, short_id
from decisions.foundation.presentation.markdown import plain_text
from decisions.foundation.presentation.visible_text import revealed, visible
from decisions.models import Token
from runs.admin.run_list.filters import ORDERS, OrderFilter, are_host_actions_shown
from runs.admin.runs.columns import (
    done_percent,
    elapsed_ms,
    is_waiting,
    label_chips,
    run_page,
    state_pill,
    template_name,
)
from runs.models import ACTIVE, Run

LABELS_SHOWN = 4
_SELECTS = ("status", "template", "time", "duration", "workspace")
WAITED_MIN_MS = 1000  # a shorter difference between elapsed and worked time is not shown


class RunChangeList(HasNextChangeList):
    """The rows of the list, with the names of the tokens that submitted them: one more query."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str]:
        """Return the columns of the chosen order."""
        name = request.GET.get(OrderFilter.parameter_name, "")
        return list(ORDERS.get(name, ORDERS["newest"])[1])

    def get_results(self, request: HttpRequest) -> None:
        """Read the requested page."""
        super().get_results(request)
        self.are_host_actions_shown = are_host_actions_shown(request)
        self.may_operate = request.user.has_perm("runs.change_run")

    def filters(self) -> dict[str, dict[str, Any]]:
        """Return the filters by parameter: the value, and the choices of those that have some."""
        return {
            spec.parameter_name: {
                "name": spec.parameter_name,
                "value": spec.value() or "",
                "choices": [(str(value), label) for value, label in spec.lookup_choices],
                "title": spec.title,
            }
            for spec in self.filter_specs
        }

    def selects(self) -> list[dict[str, Any]]:
        """Return the filters that the bar shows as a choice; one workspace is no choice."""
        filters = self.filters()
        return [filters[name] for name in _SELECTS if name in filters]

    def chosen(self) -> list[dict[str, str]]:
        """Return the filters that are set, each with the list without it."""
        return [
            {
                "title": str(spec.title),
                "value": str(dict(spec.lookup_choices).get(spec.value(), spec.value())),
                "without": self.get_query_string({}, [spec.parameter_name, PAGE_VAR]),
            }
            for spec in self.filter_specs
            if spec.value() and not isinstance(spec, OrderFilter)
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return what each row shows."""
        now, names = datetime.now(UTC), _names_of_tokens(self.result_list)
        return [_row(run, now, names) for run in self.result_list]


def _names_of_tokens(runs: Iterable[Run]) -> dict[str, str]:
    ids = {run.principal_id.removeprefix("token:") for run in runs}
    return dict(Token.objects.filter(id__in=ids).values_list("id", "name"))


def _row(run: Run, now: datetime, names: dict[str, str]) -> dict[str, Any]:
    labels = label_chips(run)
    elapsed, worked = elapsed_ms(run, now), float(run.active_ms)
    if run.status in ACTIVE:  # the running time is written when the run is suspended or ends
        worked = elapsed if elapsed is not None and not is_waiting(run) else worked
    waited = elapsed - worked if elapsed is not None and run.status not in ACTIVE else 0
    caller = run.principal_id.removeprefix("token:")
    return {
        "run": run,
        "url": run_page(run.id),
        "short_id": short_id(run.id),
        "subject": visible(run.subject or template_name(run.template_id)),
        "template": template_name(run.template_id),
        "labels": labels[:LABELS_SHOWN],
        "more_labels": ", ".join(label["text"] for label in labels[LABELS_SHOWN:]),
        "state": state_pill(run),
        "result": revealed(plain_text(run.result_summary)),
        "is_active": run.status in ACTIVE,
        "share": done_percent(run),
        "duration": duration(None if elapsed is None else worked),
        "waited": duration(waited) if waited >= WAITED_MIN_MS else "",
        "caller": visible(names.get(caller, run.principal_id)),
        "caller_query": caller,
        "user": visible(run.user_id or ""),
    }
