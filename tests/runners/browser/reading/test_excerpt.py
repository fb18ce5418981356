"""Cut an observation to whole lines, what is in view first."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import playwright
import pytest

from runners.browser.page_scripts import FOLDER

NODE = Path(playwright.__file__).parent / "driver/node"
LIMIT_BYTES, TEXT_LIMIT = 3500, 160  # as in page/excerpt.js


class Excerpt(NamedTuple):
    text: str
    next: int | None
    left: int


def excerpt_of(page: list[dict[str, Any]], *, start: int | None, full: bool) -> Excerpt:
    """Return what page/excerpt.js chooses."""
    options = json.dumps({"start": start, "full": full})
    call = f"console.log(JSON.stringify(excerptOf({json.dumps(page)}, {options})))"
    script = f"{(FOLDER / 'excerpt.js').read_text()}\n{call}"
    done = subprocess.run(
        [str(NODE), "-"], input=script, capture_output=True, text=True, timeout=60, check=True
    )
    return Excerpt(**json.loads(done.stdout))


def lines(count: int, view: range, **fields: Any) -> list[dict[str, Any]]:
    return [
        {"text": f"[{n}] link “Item {n}” → /items/{n}", "inView": n in view, **fields}
        for n in range(1, count + 1)
    ]


def test_a_page_that_fits_is_whole() -> None:
    page = [*lines(20, range(1, 5)), {"text": "long " * 100, "isText": True, "inView": False}]
    excerpt = excerpt_of(page, start=None, full=False)
    assert excerpt.text.split("\n") == [line["text"] for line in page]
    assert (excerpt.next, excerpt.left) == (None, 0)


@pytest.mark.parametrize("view", [range(1, 10), range(200, 230), range(290, 301)])
def test_a_page_that_does_not_fit_is_cut_to_what_is_in_view_and_what_is_near(view: range) -> None:
    page = lines(300, view)
    excerpt = excerpt_of(page, start=None, full=False)
    shown = [line for line in excerpt.text.split("\n") if line[0] == "["]
    assert len(excerpt.text.encode()) <= LIMIT_BYTES
    assert set(shown) >= {page[n - 1]["text"] for n in view}
    assert len(shown) + excerpt.left == 300
    assert sum(page[n - 1]["text"] in shown for n in range(1, 301)) == len(shown) > 60


def test_a_mark_says_how_many_lines_are_left_out_and_how_to_read_them() -> None:
    excerpt = excerpt_of(lines(300, range(200, 230)), start=None, full=False)
    first, *_, last = excerpt.text.split("\n")
    assert first == "… 199 lines left out (from: 1)"
    assert last == f"… {excerpt.left - 199} lines left out (from: {excerpt.next})"


def test_the_rest_is_read_on_line_by_line_without_loss() -> None:
    page = lines(300, range(1, 10))
    shown = excerpt_of(page, start=None, full=False)
    read = shown.text.split("\n")[:-1]
    while shown.next is not None:
        shown = excerpt_of(page, start=shown.next, full=False)
        read += shown.text.split("\n")
    assert read == [line["text"] for line in page]


def test_what_is_in_view_at_the_end_of_the_document_is_shown() -> None:
    page = [*lines(300, range(1, 10)), {"text": "[999] button “Accept”", "inView": True}]
    excerpt = excerpt_of(page, start=None, full=False)
    assert excerpt.text.endswith("\n[999] button “Accept”")
    assert excerpt.next is not None
    assert f"(from: {excerpt.next})" in excerpt.text


def test_texts_are_shortened_only_if_the_page_does_not_fit_and_full_is_not_set() -> None:
    page = [{"text": f"{n} " + "word " * 100, "isText": True, "inView": True} for n in range(20)]
    assert max(map(len, excerpt_of(page, start=None, full=False).text.split("\n"))) == TEXT_LIMIT
    assert excerpt_of(page, start=None, full=True).text.count("word") == 2000


def test_a_line_that_is_too_long_alone_is_shown_when_it_is_read_on() -> None:
    page = [{"text": "x" * 5000, "inView": True}, {"text": "y", "inView": True}]
    first = excerpt_of(page, start=None, full=False)
    assert first.next == 1
    assert excerpt_of(page, start=1, full=False).text == "x" * 5000


def test_reading_on_after_the_end_gives_nothing() -> None:
    assert excerpt_of(lines(3, range(1, 3)), start=9, full=False).text == ""
