"""Search logs, Redis, database, files and pages for a secret that must appear in none of them."""

from __future__ import annotations

import base64
import html
import json
import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import redis
from django.conf import settings
from django.db import connection
from django.test import Client

from artifacts.models import Artifact
from decisions.foundation.security.logs import JSONLines, RedactSecrets
from runners.models import BrowserSession
from runs.models import RunStep

QUIET = ("httpx2", "httpcore2", "openai", "anthropic")  # in `settings.LOGGING`
END_MARK = "end of the collected Redis commands"


class LogCollector(logging.Handler):
    """A log handler that collects all log lines in the format of the product."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(JSONLines())
        self.addFilter(RedactSecrets())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Store the line."""
        self.lines.append(self.format(record))


@contextmanager
def collect_logs() -> Iterator[list[str]]:
    """Collect all log lines at level DEBUG, and all Redis commands, for the length of the block."""
    collector, root = LogCollector(), logging.getLogger()
    loggers = [root, *map(logging.getLogger, QUIET)]
    levels = [logger.level for logger in loggers]
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=None)

    def listen() -> None:
        with client.monitor() as monitor:  # type: ignore[no-untyped-call]
            for command in monitor.listen():
                collector.lines.append(str(command))
                if END_MARK in str(command):
                    return

    thread = threading.Thread(target=listen)
    thread.start()
    root.addHandler(collector)
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    try:
        yield collector.lines
    finally:
        root.removeHandler(collector)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        client.echo(END_MARK)
        thread.join(10)
        client.close()


def every_row() -> str:
    """Return all rows of all tables as text."""
    texts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608
            texts += [f"{table}: {_plain(row)}" for row in cursor.fetchall()]
    return "\n".join(texts)


def _plain(row: Iterable[Any]) -> list[str]:
    return [
        bytes(value).decode("latin-1") if isinstance(value, bytes | memoryview) else str(value)
        for value in row
    ]


def every_file() -> bytes:
    """Return the bytes of all files below CONTINUITY_HOME, including database and journal files."""
    files = [path for path in Path(settings.CONTINUITY_HOME).rglob("*") if path.is_file()]
    return b"\n".join(path.read_bytes() for path in files)


def every_page(superuser_client: Client, run_id: str) -> str:
    """Return all admin pages that show a run or its session."""
    urls = [
        "/admin/",
        "/admin/runs/run/",
        f"/admin/runs/run/{run_id}/change/",
        f"/admin/runs/run/{run_id}/live/",
        "/admin/runners/browsersession/",
        "/admin/decisions/auditentry/",
        "/admin/artifacts/artifact/",
        *(
            f"/admin/runs/run/{run_id}/steps/{step.index}/"
            for step in RunStep.objects.filter(run_id=run_id)
        ),
        *(
            f"/admin/runners/browsersession/{row.id}/change/"
            for row in BrowserSession.objects.all()
        ),
        *(
            f"/admin/artifacts/artifact/{row.id}/change/"
            for row in Artifact.objects.filter(run_id=run_id)
        ),
    ]
    texts = []
    for url in urls:
        page = superuser_client.get(url)
        assert page.status_code == 200, url
        texts.append(page.content.decode())
    return "\n".join(texts)


def encodings_of(secret: str) -> set[str]:
    """Return the secret as it appears in text, URLs, JSON, HTML and Base64."""
    json_text = json.dumps(secret)[1:-1]
    nested_json = json.dumps(json_text)[1:-1]
    base64_text = base64.b64encode(secret.encode()).decode().rstrip("=")
    in_urls = {quote(secret), quote_plus(secret)}
    return {secret, *in_urls, html.escape(secret), json_text, nested_json, base64_text}


def find_secret(secret: str, sources: dict[str, str | bytes]) -> list[str]:
    """Return the names of the places that contain the secret in any form."""
    found = []
    for name, content in sources.items():
        for form in encodings_of(secret):
            if form in content if isinstance(content, str) else form.encode() in content:
                found.append(f"{name}: {form}")
    return found
