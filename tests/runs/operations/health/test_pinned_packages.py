"""`manage.py doctor` compares the installed packages with the pinned ones of this system."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from runs.operations.health.checks import check_packages, note

HASH = "    --hash=sha256:9362660c4a31150cf18e78cae2ce8aa1e929fc6c6739e69f6dd5dbea9c3edc82\n"


@pytest.mark.parametrize(
    ("pin", "is_wrong"),
    [
        (f"django=={version('django')}", False),
        ("django==1.0", True),
        ("django==1.0 ; python_version >= '3'", True),
        ("django==1.0 ; python_version < '3'", False),
        ("django[argon2]==1.0", True),
        ("not-installed==1.0", True),
        ("not-installed==1.0 ; sys_platform != 'another'", True),
    ],
)
def test_a_package_that_differs_from_its_pin_is_reported(
    tmp_path: Path, settings: Any, pin: str, is_wrong: bool
) -> None:
    redis = f"redis=={version('redis')} \\\n{HASH}    # via continuity\n"
    (tmp_path / "requirements.lock").write_text(f"# by uv\n{redis}{pin} \\\n{HASH}")
    settings.BASE_DIR = tmp_path
    result = check_packages()
    assert result.verdict == ("bad" if is_wrong else "ok")
    assert (pin.partition("=")[0].partition("[")[0] in result.what) is is_wrong


def test_without_pins_nothing_is_compared(tmp_path: Path, settings: Any) -> None:
    settings.BASE_DIR = tmp_path
    assert check_packages() == note("requirements.lock is missing, so nothing was compared")
