"""The pages of the demo site: well-formed, offline, and consistent with the code."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import decisions.foundation.errors
import runners.actions.errors
import runners.errors
from runners.actions.errors import CdpLost, TextNotShown
from runners.errors import ElementChanged, NothingSent, ToolFailed
from runs.operations.demo.site import CHAPTERS, PAGES, render_page

HTML_FILES = sorted(PAGES.rglob("*.html"))
VOID_TAGS = {"meta", "link", "input", "path", "rect", "circle"}
RUN_CODES = {
    "ELEMENT_NOT_FOUND",
    "NAVIGATION_TIMEOUT",
    "SESSION_NOT_FOUND",
    "PAGE_CRASHED",
    "INVALID_PARAMETER",
    "EXECUTION_ERROR",
    "TEMPLATE_NOT_FOUND",
    "RUN_NOT_FOUND",
    "RUN_TIMEOUT",
    "RUN_CANCELED",
    "STEP_EXECUTION_FAILED",
    "TRUST_LEVEL_NOT_ALLOWED",
    "TEMPLATE_VERSION_UNSUPPORTED",
    "ARTIFACT_NOT_FOUND",
    "ARTIFACT_EXPIRED",
    "TPL_LOGIN_FIELD_NOT_FOUND",
}
# Codes with several causes, each with its own recovery.
SHARED_CODES = {
    "STEP_EXECUTION_FAILED",
    "INVALID_PARAMETER",
    "TRUST_LEVEL_NOT_ALLOWED",
    "LLM_STREAM_FAILED",
}


def _errors_with_code(module: ModuleType) -> list[type[Any]]:
    return [
        error_class
        for error_class in vars(module).values()
        if isinstance(error_class, type) and hasattr(error_class, "code")
    ]


ERRORS = [*_errors_with_code(runners.errors), *_errors_with_code(runners.actions.errors)]
# These share another error's code but are never retried; the rows explain that in words.
ERRORS_WITH_OWN_CODE = [
    error_class
    for error_class in ERRORS
    if error_class.code not in SHARED_CODES
    and error_class not in (CdpLost, ElementChanged, NothingSent, TextNotShown)
]


class Outline(HTMLParser):
    """Collects tags, ids and addresses of a page, and fails on tags that do not match."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        attributes = dict(attrs)
        self.ids += [attributes["id"] or ""] if "id" in attributes else []
        self.addresses += [
            value
            for name in ("href", "src", "action", "data-source")
            if (value := attributes.get(name))
        ]
        if tag not in VOID_TAGS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("file", HTML_FILES, ids=lambda file: file.name)
def test_a_page_is_well_formed(file: Path) -> None:
    page = render_page(file)
    outline = Outline(page)
    assert page.startswith("<!doctype html>\n<html lang=")
    assert "<!--" not in page
    assert page.count('charset="utf-8"') == 1
    assert outline.open == []
    assert [outline.tags.count(tag) for tag in ("h1", "main")] == [1, 1]
    assert re.search(r"<title>\S[^<]+</title>", page.partition("</head>")[0])
    assert len(outline.ids) == len(set(outline.ids))


@pytest.mark.parametrize("file", HTML_FILES, ids=lambda file: file.name)
def test_a_page_links_only_to_existing_pages_of_the_site(file: Path) -> None:
    addresses = set(Outline(render_page(file)).addresses)
    assert all(address.startswith("/") and not address.startswith("//") for address in addresses)
    existing = {f"/{page.relative_to(PAGES).as_posix()}" for page in PAGES.rglob("*.*")}
    assert addresses <= existing | {"/", "/start"}


def test_the_scripts_and_the_style_sheet_load_nothing_from_other_sites() -> None:
    texts = [file.read_text("utf-8") for file in (PAGES / "assets").glob("*.[cj]s*")]
    assert len(texts) == 3
    assert not re.search(r"https?://|url\(|@import", "".join(texts))


def test_the_events_are_inserted_only_by_a_script() -> None:
    page = (PAGES / "events.html").read_text("utf-8")
    data = json.loads((PAGES / "data" / "events.json").read_text("utf-8"))
    assert "run.queued" not in page
    assert {"run.queued", "step.succeeded", "run.canceled"} <= {event["type"] for event in data}


def test_the_handbook_is_very_long_and_contains_every_chapter() -> None:
    page = render_page(PAGES / "handbook.html")
    outline = Outline(page)
    assert len(re.sub(r"<[^>]+>|\s+", " ", page)) > 25_000
    assert page.count('<section class="chapter">') == len(CHAPTERS)
    assert outline.open == []
    assert outline.tags.count("h1") == 1
    assert len(outline.ids) == len(set(outline.ids))


def test_the_form_has_secrets_to_mask() -> None:
    page = (PAGES / "create-token.html").read_text("utf-8")
    assert re.search(r'type="password" value="[^"]{8,}"', page)
    assert re.search(r'name="access_token" type="text" value="[^"]{8,}"', page)


def test_the_operations_page_lists_only_variables_that_the_settings_read() -> None:
    page = (PAGES / "operations.html").read_text("utf-8")
    variables = re.findall(r'<th scope="row"><code>([A-Z_]+)</code>', page)
    read = "".join(file.read_text("utf-8") for file in (PAGES.parents[3] / "config").glob("*.py"))
    assert len(variables) >= 7
    assert [name for name in variables if name not in read] == []


def test_the_error_codes_page_has_a_row_for_every_code() -> None:
    page = (PAGES / "error-codes.html").read_text("utf-8")
    ours = {one.code for one in [*_errors_with_code(decisions.foundation.errors), *ERRORS]}
    rows = set(re.findall(r'<tr><th scope="row"><code>([A-Za-z_]+)</code>', page))
    assert rows >= ours | RUN_CODES


@pytest.mark.parametrize(
    "error_class", ERRORS_WITH_OWN_CODE, ids=lambda error_class: error_class.__name__
)
def test_the_error_codes_page_has_the_recovery_of_each_code(error_class: type[ToolFailed]) -> None:
    page = (PAGES / "error-codes.html").read_text("utf-8")
    row = page.partition(f'<th scope="row"><code>{error_class.code}</code>')[2].partition("</tr>")[
        0
    ]
    assert error_class.recovery in row
    assert f"<td>{'yes' if error_class.retryable else 'no'}</td>" in row
