"""docs/security.md: each promise says how it is kept, and names tests that exist and OWASP ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs/security.md").read_text()
HEADER = "| promised | how | tested in | OWASP |"
OWASP_IDS = [f"{kind}{number:02}" for kind in ("ASI", "LLM") for number in range(1, 11)]


def sections() -> Iterator[str]:
    """Yield the parts of the page that are about one attacker."""
    yield from (part for part in TEXT.split("\n## ") if HEADER in part)


def rows() -> list[list[str]]:
    """Return the cells of each promise."""
    tables = [part.partition(HEADER)[2].split("\n\n")[0] for part in sections()]
    lines = [line for table in tables for line in table.splitlines()[2:]]
    return [line.strip("| ").split(" | ") for line in lines]


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = set(re.findall(r"`(tests/[^`]+)`", TEXT))
    assert len(named) > 80
    assert sorted(name for name in named if not (ROOT / name).is_file()) == []


def test_every_promise_says_how_and_names_tests_and_risks() -> None:
    assert len(rows()) > 60
    for cells in rows():
        promised, how, tests, risks = cells
        assert how
        assert "`tests/" in tests, promised
        assert risks == "—" or set(risks.split(", ")) <= set(OWASP_IDS), promised


def test_every_attacker_has_a_list_of_what_is_not_promised() -> None:
    parts = list(sections())
    assert len(parts) >= 7
    assert [part[:40] for part in parts if "\nNot promised: " not in part] == []


def test_every_owasp_risk_is_listed_and_has_a_promise_or_a_reason_why_not() -> None:
    listed = dict(re.findall(r"^\| ((?:ASI|LLM)\d\d) \| [^|]+ \| (.+) \|$", TEXT, re.MULTILINE))
    assert list(listed) == OWASP_IDS
    promised = {risk for cells in rows() for risk in cells[3].split(", ")}
    without = {risk for risk in OWASP_IDS if risk not in promised}
    assert [risk for risk in without if not listed[risk].startswith("not ")] == []
