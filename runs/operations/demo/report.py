"""Print the result of the demo's run: a table of the pages, addresses, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from runs.operations.demo.follow import path_of

PIPED_WIDTH = 100
TITLE_CELLS = 32
MANAGE = ".venv/bin/python manage.py"


def show_pages(
    console: Console, items: Sequence[Mapping[str, Any]], milliseconds: Mapping[int, int]
) -> None:
    """Print a row per page, 100 columns wide, also into a pipe, where rich would use 80."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column("page", no_wrap=True)
    table.add_column("title, or error")
    table.add_column("type", no_wrap=True)
    table.add_column("elements", justify="right", no_wrap=True)
    table.add_column("sections", justify="right", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    for step, item in enumerate(items):
        table.add_row(*(_plain(console, cell) for cell in _row(item, milliseconds.get(step))))
    _wide_enough(console).print(Padding(table, (0, 0, 0, 2), expand=False))


def _row(item: Mapping[str, Any], took_ms: int | None) -> tuple[str, ...]:
    page = path_of(str(item.get("url", "")))
    time = "" if took_ms is None else str(took_ms)
    if not item.get("success"):
        code = str((item.get("error") or {}).get("errorCode", "not read"))
        return page, code, "", "", "", time
    return (
        page,
        _shorten(str(item.get("title") or "")),
        str(item.get("pageType") or ""),
        _count(item.get("elementCount")),
        _count(item.get("contentSections")),
        time,
    )


def _count(value: object) -> str:
    """Return a number, or the length of a list, as text."""
    return str(len(value)) if isinstance(value, list) else str(value if value is not None else "")


def _shorten(text: str) -> str:
    """Shorten a title to the width of its column, counting wide characters as two cells."""
    text = " ".join(text.split())
    if cell_len(text) <= TITLE_CELLS:
        return text
    return set_cell_size(text, TITLE_CELLS - 3).rstrip() + "..."


def _plain(console: Console, text: str) -> Text:
    """Return text without markup, control codes and characters that the console cannot encode."""
    visible = "".join(letter if letter.isprintable() else " " for letter in text)
    return Text(visible.encode(console.encoding, "replace").decode(console.encoding))


def _print_labelled(console: Console, label: str, style: str, text: str) -> None:
    """Print a labelled line without wrapping, so that addresses in it can be copied."""
    console.print(Text.assemble((label, style), _plain(console, text)), soft_wrap=True)


def _wide_enough(console: Console) -> Console:
    """Return the console, or for a pipe one with 100 columns on the same file."""
    if console.is_terminal:
        return console
    return Console(file=console.file, width=PIPED_WIDTH, color_system=None)


def show_notes(
    console: Console, items: Sequence[Mapping[str, Any]], warnings: Sequence[str]
) -> None:
    """Print redirects and the run's warnings."""
    console.print()
    for note in [*_redirects(items), *warnings]:
        _print_labelled(console, "  Note: ", "bold", note)


def _redirects(items: Sequence[Mapping[str, Any]]) -> list[str]:
    notes = []
    for item in items:
        page = (item.get("pageInfo") or {}).get("page") or {}
        requested, final = path_of(str(item.get("url", ""))), path_of(str(page.get("url", "")))
        if page.get("url") and requested != final:
            notes.append(f"{requested} redirected to {final}, which was read.")
    return notes


def show_addresses(
    console: Console, run: Mapping[str, Any], *, base_url: str | None, login_path: str | None
) -> None:
    """Print the addresses of the run, its artifact and the admin site, and what to do next; no
    addresses if `base_url` is None, because the stack stops now.
    """
    summary = run.get("resultSummary") or "no summary"
    lines = [("Run", f"{run['runId']}  {run['status']}: {summary}")]
    lines += _later() if base_url is None else _addresses(run, base_url, login_path)
    lines.append(("Next", f"connect an agent host: {MANAGE} mcp_config"))
    console.print()
    for name, value in lines:
        _print_labelled(console, f"  {name:<10}", "bold", value)
    console.print()


def _later() -> list[tuple[str, str]]:
    return [("Stack", f"stops now; `{MANAGE} up` starts it again, with this run in the admin")]


def _addresses(
    run: Mapping[str, Any], base_url: str, login_path: str | None
) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if run["artifactIds"]:
        content = f"{base_url}/api/v1/artifacts/{run['artifactIds'][0]}/content"
        lines += [("Artifact", content), ("", f"needs a token: {MANAGE} create_token NAME")]
    password = f"with a password that {MANAGE} createsuperuser sets"
    lines += [
        ("Admin", f"{base_url}/admin/"),
        ("Log in", f"{base_url}{login_path}  (works once)" if login_path else password),
    ]
    return lines


def show_failure(console: Console, what: str, recovery: str) -> None:
    """Print what failed and what to do."""
    _print_labelled(console, "  Failed: ", "bold red", what)
    _print_labelled(console, "  What to do: ", "bold", recovery)
