"""The code blocks of README and docs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sample:
    """A code block: the document that has it, its language (empty: none), its lines."""

    document: str
    language: str
    text: str


def documents() -> list[Path]:
    """Return README and every page of docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def samples(language: str, *names: str) -> list[Sample]:
    """Return the blocks in a language, of all documents or of those with these names."""
    pages = [path for path in documents() if not names or name_of(path) in names]
    return [one for path in pages for one in _of(path) if one.language == language]


def python_sample(document: str) -> str:
    """Return the only Python block of a document."""
    (found,) = samples("python", document)
    return found.text


def shell_lines(text: str) -> Sequence[str]:
    """Return the commands of a shell block without comments, each on one line."""
    lines: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        command = re.sub(r"(^|\s)#.*", "", line).strip()
        if lines and lines[-1].count("'") % 2:  # a quoted text goes on
            lines[-1] += f" {command}"
        elif command:
            lines.append(command)
    return lines


def name_of(path: Path) -> str:
    """Return a document's path in the project."""
    return path.relative_to(ROOT).as_posix()


def _of(path: Path) -> Iterator[Sample]:
    for indent, language, text in BLOCK.findall(path.read_text()):
        yield Sample(name_of(path), language, textwrap.dedent(indent + text))
