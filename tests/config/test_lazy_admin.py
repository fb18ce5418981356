"""The pages of the admin are loaded by the web process and by the checks, not by other commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import django
django.setup()
from django.core.checks import run_checks
before = "runs.admin" in sys.modules
assert run_checks(tags=["admin"]) == []
print(before, "runs.admin" in sys.modules)
"""


def test_pages_of_the_admin_are_loaded_for_their_checks_and_not_before() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert completed.stdout.split() == ["False", "True"]
