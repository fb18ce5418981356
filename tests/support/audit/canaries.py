"""Where secrets are found: tables by column, files, logs, answers, pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from django.db import connection

from tests.support.audit.secret_search import encodings_of

Places = dict[str, str | bytes]


def every_column() -> Places:
    """Return the contents of each column of each table, by `table.column`."""
    places: Places = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608
            names = [column[0] for column in cursor.description]
            for name, values in zip(names, zip(*cursor.fetchall(), strict=True), strict=False):
                places[f"{table}.{name}"] = "\n".join(map(_text, values))
    return places


def files_below(name: str, folder: Path) -> Places:
    """Return the bytes of each file below a folder, by `name: path`."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {f"{name}: {path.relative_to(folder)}": path.read_bytes() for path in files}


def found_in(secrets: Mapping[str, str], places: Places) -> Iterator[tuple[str, str]]:
    """Yield (kind, place) for each place that has a secret as text, or as URLs, JSON, HTML or
    Base64 write it.
    """
    for kind, secret in secrets.items():
        forms = [form.encode() for form in encodings_of(secret)]
        for place, content in places.items():
            data = content if isinstance(content, bytes) else content.encode(errors="replace")
            if any(form in data for form in forms):
                yield kind, place


def _text(value: object) -> str:
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("latin-1")
    return str(value)
