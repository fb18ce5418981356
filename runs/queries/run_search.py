"""Find runs by a text that a person enters, and by the values that lists filter by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

from django.conf import settings
from django.db import connection
from django.db.models import Q, QuerySet
from django.utils.translation import gettext, override

from artifacts.models import Artifact
from runs.models import Run, RunStatus
from runs.search.matching import Term, matching
from runs.search.terms import facet, label_facet, words_to_find, words_to_store
from runs.task_templates.registry import list_templates

QUERY_WORDS = 20  # words of a query that count
_SHORT_ID = "_…"  # as pages show an id: run_…, then its end


@dataclass(frozen=True, slots=True)
class RunFilters:
    """Which runs a list shows; None for any.

    Attributes:
        query: words that the subject, the labels, the template, the id or the error code have.
        waiting: whether the run waits for a person.
        since, until: when it was accepted: from `since` on, before `until`.
    """

    status: str | None = None
    template_id: str | None = None
    query: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    error_code: str | None = None
    user_id: str | None = None
    principal_id: str | None = None
    waiting: bool | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def has_total(self) -> bool:
        """Whether `runs.queries.totals` counts the runs that match."""
        counted = RunFilters(status=self.status, template_id=self.template_id)
        return self == counted

    def apply(self, runs: QuerySet[Run], workspace_id: str = "") -> QuerySet[Run]:
        """Return the runs that match; `workspace_id` makes the search of terms narrower."""
        if self.status is not None:
            runs = runs.filter(status=self.status)
        if self.template_id is not None:
            runs = runs.filter(template_id=self.template_id)
        if self.waiting is not None:
            runs = waiting_runs(runs) if self.waiting else runs.exclude(_WAITING)
        if self.since is not None:
            runs = runs.filter(created_at__gte=self.since)
        if self.until is not None:
            runs = runs.filter(created_at__lt=self.until)
        if facets := list(self._facets()):
            scope = [facet("workspace", workspace_id)] if workspace_id else []
            runs = matching(runs, [[Term(text)] for text in [*scope, *facets]])
        return runs if self.query is None else find_runs(runs, self.query, workspace_id)

    def _facets(self) -> Iterator[str]:
        yield from (label_facet(name, value) for name, value in self.labels.items())
        if self.error_code is not None:
            yield facet("error", self.error_code)
        if self.user_id is not None:
            yield facet("user", self.user_id)
        if self.principal_id is not None:
            yield facet("principal", self.principal_id)


_WAITING = Q(ended_at__isnull=True, status=RunStatus.RUNNING, ready=False) & Q(
    waiting_for__isnull=False
)


def waiting_runs(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return the suspended runs: those that wait for a person."""
    return runs.filter(_WAITING)


def find_runs(runs: QuerySet[Run], text: str, workspace_id: str = "") -> QuerySet[Run]:
    """Return the runs that a text finds: by the id of the run, its session, an artifact or its
    worker; else the runs that have every word of it, or the beginning of one, in subject, labels,
    template, end of the id or error code.
    """
    text = text.strip()
    by_id = _find_by_id(runs, text)
    if by_id is not None:
        return by_id
    words = list(words_to_find(text.removeprefix(f"run{_SHORT_ID}")))[:QUERY_WORDS]
    if not words:
        return runs.none()
    scope = [[Term(facet("workspace", workspace_id))]] if workspace_id else []
    return matching(runs, [*scope, *(_alternatives(word) for word in dict.fromkeys(words))])


def _find_by_id(runs: QuerySet[Run], text: str) -> QuerySet[Run] | None:
    """Return the runs of a whole id, or of the beginning of a run's id; None for another text."""
    prefix, mark, rest = text.partition("_")
    condition = _IDS.get(prefix) if mark and rest.isalnum() else None
    return None if condition is None else runs.filter(condition(text))


def _begins_with(text: str) -> Q:
    if connection.vendor == "sqlite":  # a LIKE would not use the index
        return Q(id__gte=text, id__lt=text + "\U0010ffff")
    return Q(id__startswith=text)


_IDS: Mapping[str, Callable[[str], Q]] = {
    "run": _begins_with,
    "art": lambda text: Q(id__in=Artifact.objects.filter(id=text).values("run_id")),
    # SQLite uses the partial index only if the query repeats its condition.
    "sess": lambda text: Q(session_id=text, session_id__isnull=False),
    "wrk": lambda text: Q(lease_owner=text),
}


def _alternatives(word: str) -> list[Term]:
    """Return the terms of runs that a word finds: its own, and those of templates so named."""
    templates = [
        Term(facet("template", template_id))
        for template_id, names in _words_of_templates().items()
        if any(name.startswith(word) for name in names)
    ]
    return [Term(word, is_start=True), *templates]


@cache
def _words_of_templates() -> dict[str, frozenset[str]]:
    """Return the words in the id and the names of each template, in every language of the pages."""
    languages = [code for code, _ in settings.LANGUAGES] if settings.USE_I18N else [None]
    words: dict[str, set[str]] = {one.template_id: set() for one in list_templates()}
    for language in languages:
        with override(language):
            for template in list_templates():
                for text in (template.template_id, gettext(template.name)):
                    words[template.template_id].update(words_to_store(text))
    return {template_id: frozenset(found) for template_id, found in words.items()}
