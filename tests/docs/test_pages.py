"""What each page of docs has: an example on its first screen, and a contract for each citation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.docs.samples import ROOT, documents, name_of
from tests.test_house_style import sources

SCREEN = 40
# Pages that are looked up, not read: why they have no example on their first screen.
WITHOUT_EXAMPLE = {
    "docs/glossary.md": "a table of nouns",
    "docs/extension-privacy.md": "the text of the extension's own page on privacy",
}
CITATION = re.compile(r"\bS([0-4]) (§[\d.]+(?:(?:, | and | to )§[\d.]+)*)")


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield (contract, section) of each citation; `§1.1 to §1.5` has the sections between."""
    for contract, cited in CITATION.findall(text):
        parts = [part.strip(".") for part in re.findall(r"§([\d.]+)", cited)]
        yield from ((contract, part) for part in parts)
        for first, last in pairwise(parts) if " to " in cited else ():
            start, end = (int(part.rpartition(".")[2]) for part in (first, last))
            chapter = first.removesuffix(str(start))
            if last == f"{chapter}{end}":
                yield from ((contract, f"{chapter}{number}") for number in range(start, end))


def citing() -> Iterator[Path]:
    """Yield the files that may cite a contract: the sources, the extension's scripts, the docs."""
    yield from sources()
    yield from (ROOT / "runners").rglob("*.js")
    yield from documents()


def test_each_page_shows_an_example_on_its_first_screen() -> None:
    without = {
        name_of(page)
        for page in documents()
        if page.parent.name != "decisions"  # each records one decision in a screen
        and not re.search(r"^```", "\n".join(page.read_text().splitlines()[:SCREEN]), re.M)
    }
    assert without == set(WITHOUT_EXAMPLE)


def test_each_section_that_is_cited_is_explained_by_its_contract() -> None:
    explained = set(sections((ROOT / "docs/contracts.md").read_text()))
    cited = {
        (f"S{contract} §{section}", path.relative_to(ROOT).as_posix())
        for path in citing()
        for contract, section in sections(path.read_text())
        if (contract, section) not in explained
    }
    assert cited == set()
    assert len(explained) > 50
