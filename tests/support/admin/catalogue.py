"""The translations in `locale/`, as text (.po) and compiled (.mo)."""

from __future__ import annotations

import ast
import gettext
import re
from pathlib import Path

from django.conf import settings

LINE = re.compile(r'(msgid|msgid_plural|msgstr(?:\[0\])?|msgctxt) (".*")')


def catalogues() -> list[Path]:
    """Return the .po files."""
    return sorted(path for root in settings.LOCALE_PATHS for path in Path(root).rglob("*.po"))


def translations(po: Path) -> dict[str, str]:
    """Return message -> translation, as gettext names them: a context before "\\4"."""
    found: dict[str, str] = {}
    for block in po.read_text().strip().split("\n\n"):
        entry = _entry(block)
        if entry.get("msgid"):
            context = entry.get("msgctxt")
            message = f"{context}\4{entry['msgid']}" if context else entry["msgid"]
            found[message] = entry.get("msgstr") or entry.get("msgstr[0]", "")
    return found


def _entry(block: str) -> dict[str, str]:
    entry: dict[str, str] = {}
    name = ""
    for line in block.splitlines():
        start = LINE.fullmatch(line)
        if start:
            name = start.group(1)
            entry[name] = str(ast.literal_eval(start.group(2)))
        elif line.startswith('"'):
            entry[name] += str(ast.literal_eval(line))
    return entry


def compiled(po: Path) -> dict[str, str]:
    """Return message -> translation of the compiled file beside a .po file."""
    with po.with_suffix(".mo").open("rb") as file:
        catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    return {
        (message[0] if isinstance(message, tuple) else message): text
        for message, text in catalogue.items()
        if message
    }
