"""Match runs by their terms: with the GIN index on PostgreSQL, with the FTS5 table on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import BooleanField, F, Func, QuerySet, Value

from runs.models import Run, RunTerms

FEW = 5_000  # runs whose rows can all be read and sorted in a fraction of a second
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
    first, until enough of them have it. So on PostgreSQL this reads the ids of up to FEW runs by
    the index of terms: few ones are the condition, many are soon among the newest.
    """
    if not groups:
        return runs
    found = RunTerms.objects.filter(_condition(groups)).order_by().values_list("run_id", flat=True)
    if connection.vendor == "postgresql" and len(ids := _read_by_index(found[: FEW + 1])) <= FEW:
        return runs.filter(id__in=ids) if ids else runs.none()
    return runs.filter(id__in=found.values("run_id"))


def _read_by_index(ids: QuerySet[RunTerms, str]) -> list[str]:
    """Return the ids that the index of terms finds; with a limit PostgreSQL would rather read the
    table, in the hope to find enough rows soon, and if there are none it reads all.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        found = list(ids)
        cursor.execute("SET LOCAL enable_seqscan TO DEFAULT")
    return found


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
