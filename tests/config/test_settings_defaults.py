"""Defaults of the settings that protect an installation, read in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

SHARED = {
    "DATABASE_URL": "postgresql://user@localhost/continuity",
    "CONTINUITY_SECRET_KEYS": "k" * 40,
}
_OURS = ("CONTINUITY_", "DATABASE_", "REDIS_", "CELERY_")


def read_settings(
    home: Path, expression: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Print an expression of the settings in a new process with only these variables of ours."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(_OURS)}
    return subprocess.run(
        [sys.executable, "-c", f"from config import settings; print({expression})"],
        cwd=settings.BASE_DIR,
        env={**inherited, "CONTINUITY_HOME": str(home / "home"), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        umask=0o022,
    )


@pytest.mark.parametrize("keys", ["", "short", "k" * 40 + ",short"])
def test_a_shared_database_needs_strong_keys(tmp_path: Path, keys: str) -> None:
    environment = {**SHARED, "CONTINUITY_SECRET_KEYS": keys}
    process = read_settings(tmp_path, "settings.SECRET_KEY", **environment)
    assert process.returncode != 0
    assert "at least 32 characters" in process.stderr


def test_one_time_logins_are_off_with_a_shared_database(tmp_path: Path) -> None:
    assert read_settings(tmp_path, "settings.ONE_TIME_LOGIN", **SHARED).stdout == "False\n"
    assert read_settings(tmp_path, "settings.ONE_TIME_LOGIN").stdout == "True\n"


def test_by_default_debugging_is_off_and_only_local_names_are_served(tmp_path: Path) -> None:
    process = read_settings(tmp_path, "settings.DEBUG, settings.ALLOWED_HOSTS", **SHARED)
    assert process.stdout == "False ['127.0.0.1', 'localhost', '[::1]']\n"


def test_only_the_owner_reads_the_keys_of_a_new_installation(tmp_path: Path) -> None:
    assert read_settings(tmp_path, "settings.EMBEDDED").stdout == "True\n"
    home = tmp_path / "home"
    assert home.stat().st_mode & 0o077 == 0
    assert (home / "keys").stat().st_mode & 0o077 == 0
