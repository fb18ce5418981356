"""Match runs by their terms: with the GIN index on PostgreSQL, with the FTS5 table on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import BooleanField, F, Func, QuerySet, Value

from runs.models import Run, RunTerms

FEW = 20_000  # runs whose rows can all be read and sorted in a fraction of a second
ADDED_MEANWHILE = 100  # runs that may be submitted between counting and reading
# The names and expressions of migration 0020.
_POSTGRESQL = "(array_to_tsvector(string_to_array(%(expressions)s::tsquery)"
_SQLITE = "(%(expressions)s)"


@dataclass(frozen=True, slots=True)
class Term:
    """A term to look for; with `is_start` any term that begins with it."""

    text: str
    is_start: bool = False


def matching(runs: QuerySet[Run], groups: Sequence[Sequence[Term]]) -> QuerySet[Run]:
    """Return the runs that have at least one term of each group.

    PostgreSQL cannot estimate how many runs have a rare term, and would read all runs, the newest
    first, until enough of them have it. So on PostgreSQL this counts them up to FEW: few ones are
    read by the index of terms first, which a LIMIT enforces, and the LIMIT is the estimate of their
    number; many are soon among the newest.
    """
    if not groups:
        return runs
    found = RunTerms.objects.filter(_condition(groups)).order_by()
    ids = found.values("run_id")
    if connection.vendor == "postgresql" and (number := found[: FEW + 1].count()) <= FEW:
        ids = ids[: number + ADDED_MEANWHILE]
    return runs.filter(id__in=ids)


def _condition(groups: Sequence[Sequence[Term]]) -> Func:
    if connection.vendor == "postgresql":
        query = " & ".join(_any_of(group, "'{}'{}", ":*", " | ") for group in groups)
        return Func(
            F("terms"),
            Value(query),
            template=_POSTGRESQL,
            arg_joiner=", ' ')) @@ ",
            output_field=BooleanField(),
        )
    query = " AND ".join(_any_of(group, '"{}"{}', "*", " OR ") for group in groups)
    return Func(
        F("id"),
        Value(query),
        template=f"{_SQLITE[:-1]}))",
        arg_joiner=" IN (SELECT rowid FROM runs_runterms_fts WHERE runs_runterms_fts MATCH ",
        output_field=BooleanField(),
    )


def _any_of(group: Sequence[Term], quoted: str, start: str, join: str) -> str:
    """Return the alternatives as a query; terms have letters and digits only."""
    parts = (quoted.format(term.text, start if term.is_start else "") for term in group)
    return f"({join.join(parts)})"
