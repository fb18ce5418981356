"""The programs that the tests need or use, as found on this machine."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from runners.browser.pool.chromium import ChromiumMissing, find_chromium
from runs.operations.home.redis_server import find_binary
from tests.services import postgres_folder

# Without these, some tests are skipped; the set-up installs them if it may.
OPTIONAL = {
    "ripgrep": "rg",
    "bubblewrap": "bwrap",
    "nginx": "nginx",
    "pgbouncer": "pgbouncer",
}
# Debian's administrative programs are not on every user's PATH.
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"


class ProgramMissing(Exception):
    """A program that the tests need is not installed; the message says which and what to do."""


def describe_programs() -> str:
    """Return one line with the programs and their versions.

    Raises:
        ProgramMissing: PostgreSQL, Redis or Chromium is missing.
    """
    try:
        postgres = postgres_folder() / "postgres"
        chromium = find_chromium().path
    except (RuntimeError, ChromiumMissing) as error:
        raise ProgramMissing(str(error)) from error
    redis = shutil.which("redis-server") or find_binary()
    if redis is None:
        raise ProgramMissing("No redis-server was found; `make setup-tests` installs it.")
    found = [
        f"Python {platform.python_version()}",
        f"PostgreSQL {_version(postgres)}",
        f"{Path(redis).name} {_version(redis)}",
        f"Chromium {_version(chromium)}",
    ]
    found += [
        name if shutil.which(binary, path=PATH) else f"no {name}"
        for name, binary in OPTIONAL.items()
    ]
    fonts = subprocess.run(["fc-list", "-q", ":lang=zh"], check=False) if _has_fc_list() else None
    found.append("a CJK font" if fonts and fonts.returncode == 0 else "no CJK font")
    return ", ".join(found)


def _has_fc_list() -> bool:
    return shutil.which("fc-list") is not None


def _version(program: str | Path) -> str:
    output = subprocess.run(
        [str(program), "--version"], capture_output=True, text=True, check=False
    ).stdout
    number = re.search(r"\d+(\.\d+)+", output)
    return number[0] if number else "of unknown version"
