"""The translations in `locale/`, as text (.po) and compiled (.mo)."""

from __future__ import annotations

import ast
import gettext
import re
from pathlib import Path

from django.conf import settings
from django.utils.translation.template import templatize

TEXT = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\''  # as Python and JavaScript write it
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


def messages_of_pages() -> set[str]:
    """Return the texts that Python files and templates mark for translation."""
    found: set[str] = set()
    for app in ("config", "decisions", "artifacts", "runners", "runs"):
        for path in (settings.BASE_DIR / app).rglob("*.py"):
            found.update(_messages(ast.parse(path.read_text())))
        for path in (settings.BASE_DIR / app).rglob("templates/**/*.html"):
            marked = re.findall(
                r"(?:^|[\s(])(?:gettext|ngettext|_)\(u?(" + TEXT + ")", templatize(path.read_text())
            )
            found.update(str(ast.literal_eval(text)) for text in marked)
    return found


def messages_of_scripts() -> set[str]:
    """Return the texts that scripts pass to `gettext`."""
    scripts = (path for app in ("decisions", "runs", "runners") for path in _scripts(app))
    marked = (re.findall(r"\b(?:gettext|ngettext)\((" + TEXT + ")", text) for text in scripts)
    return {str(ast.literal_eval(text)) for texts in marked for text in texts}


def _scripts(app: str) -> list[str]:
    folder = Path(settings.BASE_DIR) / app / "static" / "continuity"
    return [path.read_text() for path in folder.glob("*.js")]


def _messages(tree: ast.AST) -> set[str]:
    names = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy"}
    return {
        str(node.args[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in names
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
