"""docs/configuration.md lists every environment variable that the settings read."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_every_variable_that_the_settings_read_is_documented() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "config").glob("*.py"))
    read = set(re.findall(r'"((?:CONTINUITY|RUN)_[A-Z0-9_]+|DATABASE_URL|REDIS_URL)"', sources))
    documented = set(re.findall(r"`([A-Z0-9_]+)`", (ROOT / "docs/configuration.md").read_text()))
    assert len(read) > 40
    assert sorted(read - documented) == []
