"""Fixtures of the fault tests: each test gets a new installation, created from a database that was
migrated once."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from pytest_django import DjangoDbBlocker
from redis import Redis

from tests.faults.installation import FaultInstallation, use_database, use_installation
from tests.services import RedisServer, redis_server

POSTGRESQL = os.environ.get("CONTINUITY_TEST_DATABASE") == "postgresql"


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    """A Redis that only these tests use, and may kill."""
    with redis_server() as server:
        yield server


def _administer(statement: str) -> None:
    shared = settings.DATABASES["default"]
    conninfo = f"host={shared['HOST']} port={shared['PORT']} user={shared['USER']} dbname=postgres"
    with psycopg.connect(conninfo, autocommit=True) as server:
        server.execute(statement.encode())


@pytest.fixture(scope="session")
def migrated_database(django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The name or path of a database that has every table and no row."""
    folder = Path(tempfile.mkdtemp(prefix="cty-faults-"))
    name = f"faults_{uuid4().hex[:8]}" if POSTGRESQL else str(folder / "migrated.sqlite3")
    if POSTGRESQL:
        _administer(f"CREATE DATABASE {name}")
    with django_db_blocker.unblock(), use_database(NAME=name):
        call_command("migrate", verbosity=0)
    yield name
    shutil.rmtree(folder)
    if POSTGRESQL:
        _administer(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def installation(
    migrated_database: str, redis: RedisServer, django_db_blocker: DjangoDbBlocker, tmp_path: Path
) -> Iterator[FaultInstallation]:
    """A new installation; the fixture ends its processes after the test."""
    home = Path(tempfile.mkdtemp(prefix="cty-faults-"))
    database: dict[str, Any] = {"NAME": str(home / "continuity.sqlite3")}
    url = ""
    if POSTGRESQL:
        database = {"NAME": f"{migrated_database}_{uuid4().hex[:8]}"}
        _administer(f"CREATE DATABASE {database['NAME']} TEMPLATE {migrated_database}")
        shared = settings.DATABASES["default"]
        address = f"{shared['USER']}@{shared['HOST']}:{shared['PORT']}"
        url = f"postgresql://{address}/{database['NAME']}"
    else:
        shutil.copyfile(migrated_database, database["NAME"])
    if not redis.answers():
        redis.start()
    with Redis.from_url(redis.url) as client:
        client.flushall()  # a worker that the last test killed left what it had received
    database["CONN_MAX_AGE"] = 0  # else pool threads keep connections to the last test's database
    with django_db_blocker.unblock(), use_database(**database):
        with use_installation(FaultInstallation(home, url, redis)) as new_installation:
            yield new_installation
        connection.close()
    if POSTGRESQL:
        _administer(f"DROP DATABASE {database['NAME']} WITH (FORCE)")
