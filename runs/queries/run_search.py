"""Find runs by a text that a person enters, and by the values that lists filter by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import islice

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
        min_elapsed_ms, max_elapsed_ms: how long it worked at least and at most; ended runs only.
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
    min_elapsed_ms: int | None = None
    max_elapsed_ms: int | None = None

    @property
    def names_host_actions(self) -> bool:
        """Whether browser actions of agent hosts are among the runs that are asked for: by their
        template, by an id, or as what waits for a person.
        """
        is_id = self.query is not None and _by_id(self.query) is not None
        return bool(self.template_id) or self.waiting is True or is_id

    @property
    def has_total(self) -> bool:
        """Whether `runs.queries.totals` counts the runs that match."""
        counted = RunFilters(status=self.status, template_id=self.template_id)
        return self == counted

    def apply(self, runs: QuerySet[Run], workspace_id: str = "") -> QuerySet[Run]:
        """Return the runs that match; `workspace_id` makes the search of terms narrower."""
        equal = {"status": self.status, "template_id": self.template_id}
        times = {"created_at__gte": self.since, "created_at__lt": self.until}
        worked = {"active_ms__gte": self.min_elapsed_ms, "active_ms__lte": self.max_elapsed_ms}
        wanted = equal | times | worked
        given = {name: value for name, value in wanted.items() if value is not None}
        if given.keys() & worked.keys():
            given["ended_at__isnull"] = False
        runs = runs.filter(**given) if given else runs
        if self.waiting is not None:
            runs = waiting_runs(runs) if self.waiting else runs.exclude(_WAITING)
        by_id = None if self.query is None else _by_id(self.query)
        if by_id is not None:
            runs = runs.filter(by_id)
        elif self.query is not None and not any(_words(self.query)):
            return runs.none()
        return self._with_terms(runs, workspace_id, self.query if by_id is None else None)

    def _with_terms(
        self, runs: QuerySet[Run], workspace_id: str, query: str | None
    ) -> QuerySet[Run]:
        groups = [[Term(text)] for text in self._facets()] + _words(query or "")
        if groups and workspace_id:
            groups.append([Term(facet("workspace", workspace_id))])
        return matching(runs, groups)

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


def find_runs(runs: QuerySet[Run], text: str) -> QuerySet[Run]:
    """Return the runs that a text finds: by the id of the run, its session, an artifact or its
    worker; else the runs that have every word of it, or the beginning of one, in subject, labels,
    template, end of the id or error code.
    """
    return RunFilters(query=text).apply(runs)


def _words(text: str) -> list[list[Term]]:
    """Return the terms of each word of a text."""
    words = words_to_find(text.strip().removeprefix(f"run{_SHORT_ID}"))
    return [_alternatives(word) for word in dict.fromkeys(islice(words, QUERY_WORDS))]


def _by_id(text: str) -> Q | None:
    """Return the condition of a whole id, or of the beginning of a run's id; None for another
    text.
    """
    prefix, mark, rest = text.strip().partition("_")
    condition = _IDS.get(prefix) if mark and rest.isalnum() else None
    return None if condition is None else condition(text.strip())


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
