"""docs/security.md names the tests of each promise; they exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_HEADER = "| promised | tested in |"


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = set(re.findall(r"`(tests/[^`]+)`", (ROOT / "docs/security.md").read_text()))
    assert len(named) > 30
    assert sorted(name for name in named if not (ROOT / name).is_file()) == []


def test_every_promise_of_the_threat_model_names_a_test_and_every_attacker_has_promises() -> None:
    attackers = (ROOT / "docs/security.md").read_text().split("\n## ")
    tables = [part for part in attackers if _HEADER in part]
    assert len(tables) >= 6
    for part in tables:
        rows = part.partition(_HEADER)[2].split("\n\n")[0].splitlines()[2:]
        assert rows
        assert [row for row in rows if "`tests/" not in row.rpartition(" | ")[2]] == []
        assert "\nNot promised: " in part
