"""A run keeps the whole text of each page; answers show a part and say where to read on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import orjson
import pytest

from decisions.identity.principals import Principal
from runs.models import Run
from runs.queries.page_content import pages_of
from runs.queries.page_reader import read_page_content
from runs.task_templates.page_texts import cut_pages, kept_page
from tests.support.browser.template_sites import HEAD, RunTemplate, Site

PARTS = 40
Read = Callable[..., dict[str, Any]]


def long_page(name: str, word: str) -> str:
    parts = "".join(f"<h2>{name} {n}</h2><p>{'Plain words. ' * 40}" for n in range(PARTS))
    return f"{HEAD}<title>{name}</title><main>{parts}<h2>Terms</h2><p>{word} is defined here."


@pytest.fixture
def long_urls(site: Site) -> list[str]:
    """Return the URLs of two pages with 20 000 characters, whose last sections differ."""
    site.server.add("/first", long_page("Part", "checkpoint"))
    site.server.add("/second", long_page("Part", "vacuum"))
    return [site.url("/first"), site.url("/second")]


@pytest.fixture
def read(principal: Principal) -> Read:
    """Call `read_page_content` for a run."""

    def call(run: Run, **options: Any) -> dict[str, Any]:
        return read_page_content(principal=principal, call={"runId": run.id, **options})

    return call


def test_a_word_beyond_the_cut_is_found(
    run_template: RunTemplate, long_urls: list[str], read: Read
) -> None:
    run = run_template("batch_extract_pages", urls=long_urls)
    assert run.result is not None, run.error
    assert "vacuum" not in str(run.result)
    (match,) = read(run, grep="vacuum")["matches"]
    assert (match["item"], match["heading"]) == (1, "Terms")
    sections = read(run, item=0, sections=["Terms"])["pages"][0]["sections"]
    assert sections[0]["text"] == "checkpoint is defined here."


def test_a_cut_text_says_so_and_where_to_read_on(
    run_template: RunTemplate, long_urls: list[str], read: Read
) -> None:
    run = run_template("batch_extract_pages", urls=long_urls)
    assert run.result is not None, run.error
    content = run.result["items"][1]["content"]
    shown = "".join(section["text"] for section in content["sections"])
    assert (content["truncated"], run.result["truncated"]) == (True, True)
    assert content["totalCharacters"] > 20_000
    assert len(shown) <= 4000
    rest = read(run, **content["readOn"], maxChars=30_000)
    texts = [section["text"] for section in rest["pages"][0]["sections"]]
    assert len(shown) + len("".join(texts)) == len("Plain words. " * 40) * PARTS - PARTS + len(
        "vacuum is defined here."
    )
    (action,) = run.next_actions
    assert action["tool"] == "read_page_content"
    assert action["args"]["outline"] is True  # of both pages
    assert "grep" in action["reason"]


def test_a_text_that_is_shown_whole_is_not_marked(run_template: RunTemplate, site: Site) -> None:
    run = run_template("batch_extract_pages", urls=[site.url("/article")])
    assert run.result is not None, run.error
    assert "readOn" not in run.result["items"][0]["content"]
    assert ("truncated" in run.result, run.next_actions) == (False, [])


def test_headings_beyond_the_cut_are_compared(
    run_template: RunTemplate, site: Site, read: Read
) -> None:
    prose = "Plain words. " * 800
    for path, heading in (("/a", "Price"), ("/b", "Price"), ("/c", "Costs")):
        site.server.add(path, f"{HEAD}<h2>Intro</h2><p>{prose}<h2>{heading}</h2><p>Text.")
    urls = [site.url(path) for path in ("/a", "/b", "/c")]
    run = run_template("multi_tab_compare", urls=urls, extract={"maxContentLength": 500})
    assert run.result is not None, run.error
    (diff,) = run.result["diffs"]
    assert diff["values"][urls[2]] == ["Intro", "Costs"]
    assert diff["changedPositions"] == [1]
    assert run.result["snapshots"][0]["content"]["truncated"] is True
    assert read(run, grep="Text", item=2)["matches"][0]["heading"] == "Costs"


def test_a_comparison_without_texts_keeps_them_for_reading(
    run_template: RunTemplate, long_urls: list[str], read: Read
) -> None:
    run = run_template("multi_tab_compare", urls=long_urls)
    assert run.result is not None, run.error
    assert run.result["snapshots"][0]["content"]["sections"] == []
    assert read(run, grep="checkpoint")["matches"][0]["item"] == 0


def test_a_called_tool_stores_the_page_that_it_cuts(
    run_template: RunTemplate, long_urls: list[str], principal: Principal
) -> None:
    calls = [{"name": "read_page", "args": {"url": long_urls[0]}}]
    run = run_template("call_tools", calls=calls)
    assert run.result is not None, run.error
    content = run.result["results"][0]["output"]["content"]
    assert content["truncated"] is True
    call = {"artifactId": content["readOn"]["artifactId"], "grep": "checkpoint"}
    assert read_page_content(principal=principal, call=call)["matches"]


def page_of(length: int) -> dict[str, Any]:
    sections = [{"heading": "A", "level": 1, "text": "x" * length}]
    return {"url": "u", "success": True, "content": {"sections": sections}, "warnings": []}


def test_a_result_over_the_budget_shows_less_of_each_page() -> None:
    short, read_on = cut_pages({"items": [page_of(9000) for _ in range(20)]}, 4000, 20_000)
    texts = [item["content"]["sections"][0]["text"] for item in short["items"]]
    assert {len(text) for text in texts} == {499}
    assert read_on == {"outline": True}
    _, read_on = cut_pages({"items": [page_of(9), page_of(900)]}, 499, 20_000)
    assert read_on == {"item": 1, "offset": 499}


@pytest.mark.parametrize(
    "sections", [["intro"], [{"title": "x"}], [{"heading": None, "text": "x"}], [{"heading": "x"}]]
)
def test_a_result_that_only_resembles_a_page_is_shown_as_it_is(sections: list[Any]) -> None:
    result = {"content": {"sections": sections}}
    assert cut_pages(result, 0, 10) == (result, None)
    assert pages_of(result) == []


def test_a_result_without_texts_of_pages_is_cut_once(monkeypatch: pytest.MonkeyPatch) -> None:
    dumps = Mock(side_effect=orjson.dumps)
    monkeypatch.setattr(orjson, "dumps", dumps)
    cut_pages({"items": ["x" * 1000]}, 1_000_000, 10)
    assert dumps.call_count <= 1


def test_a_run_of_a_thousand_pages_keeps_less_of_huge_ones_and_says_so() -> None:
    kept = kept_page(page_of(90_000), pages=1000)
    assert len(kept["content"]["sections"][0]["text"]) == 49_999
    assert "first 50000 characters" in kept["warnings"][0]
    assert kept_page(page_of(90_000), pages=10) == page_of(90_000)
