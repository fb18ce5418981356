"""Set up the environment of the tests before Django reads its settings (loaded by pytest's `-p`).

CONTINUITY_TEST_DATABASE selects sqlite (default) or postgresql. The first process starts Redis and,
if selected, PostgreSQL on a socket or a free port. The workers of pytest-xdist inherit the
addresses. The servers stop when the first process exits.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from manage import go_on_in_utf8
from tests.services import postgres_server, redis_server

# Test modules import names from modules of fixtures, which pytest must rewrite before that.
pytest.register_assert_rewrite("tests.support")
# Imports and collection create objects that live until the end: collecting garbage there is a
# quarter of their time.
gc.disable()
_stack = contextlib.ExitStack()


def _fastest_folder() -> str | None:
    """Return /dev/shm if it has enough space.

    The product syncs each commit to disk, and tests commit often.
    """
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2 * 1024**3
    return str(memory) if roomy and os.access(memory, os.W_OK) else None


def _start() -> None:
    home = Path(tempfile.mkdtemp(prefix="cty-test-", dir=_fastest_folder()))
    _stack.callback(shutil.rmtree, home, ignore_errors=True)
    atexit.register(_stack.close)
    os.environ["CONTINUITY_TEST_ROOT"] = str(home)
    os.environ["REDIS_URL"] = _stack.enter_context(redis_server()).url
    os.environ.pop("DATABASE_URL", None)
    os.environ["CONTINUITY_SECRET_KEYS"] = "tests-only-" + "k" * 40
    if os.environ.get("CONTINUITY_TEST_DATABASE") == "postgresql":
        os.environ["DATABASE_URL"] = _stack.enter_context(postgres_server()).url


if "CONTINUITY_TEST_ROOT" not in os.environ:
    go_on_in_utf8()
    try:
        _start()
    except RuntimeError as error:  # a server is missing: its name alone, without a traceback
        sys.exit(str(error))
# Each xdist worker has its own home (SQLite file, artifacts) and its own prefix for Redis keys.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
_home = Path(os.environ["CONTINUITY_TEST_ROOT"]) / _worker
_home.mkdir(exist_ok=True)
os.environ["CONTINUITY_HOME"] = str(_home)
os.environ["CONTINUITY_REDIS_PREFIX"] = f"test-{_worker}:"
os.environ["CONTINUITY_TEMPLATE_MODULES"] = (
    "tests.support.runs.step_template,tests.support.runs.call_template,tests.support.runs.conversation_template"
)
os.environ.setdefault("CONTINUITY_LOG_LEVEL", "WARNING")


def pytest_configure() -> None:
    """Replace the teardown of transactional tests; Django must be set up before these imports."""
    from django.conf import settings

    from tests.emptying import empty_after_each_test

    settings.FAILPOINTS = True
    empty_after_each_test()


def pytest_collection_finish() -> None:
    """Collect garbage from here on, except the loaded objects."""
    gc.collect()
    gc.freeze()
    gc.enable()
