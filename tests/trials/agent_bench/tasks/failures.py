"""Pages that fail, are slow, come back, or finish later."""

from __future__ import annotations

import time

from tests.trials.agent_bench.site import Site, SiteRequest, SiteResponse, as_json, page
from tests.trials.agent_bench.solver.intents import (
    Answer,
    Back,
    Find,
    Open,
    Press,
    Until,
    WaitFor,
)
from tests.trials.agent_bench.task import (
    THINGS,
    Assignment,
    Seeded,
    bench_task,
    has_word,
    read_script,
)

SLOW_S = 7.0  # longer than the time limits of actions that do not navigate


@bench_task("missing page", kind="failure")
def missing_page(site: Site, seeded: Seeded) -> Assignment:
    """One of two links leads nowhere; the other one has the answer."""
    code, (gone, kept) = seeded.code(), seeded.some(("2025", "2026"), 2)
    links = seeded.order(*(f"<li><a href=/{y}>Archive {y}</a></li>" for y in (gone, kept)))
    site.add("/", page("Archive", f"<h1>Archive</h1><ul>{links}</ul>"))
    site.add(f"/{kept}", page(kept, f"<h1>{kept}</h1><p>The number is {code}</p>"))
    return Assignment(
        f"The archive at {site.url}/ has two years. One of their pages is missing: which year, and"
        " what is the number on the other one? Do not name the other year.",
        [
            Open(f"{site.url}/"),
            Press(f"Archive {gone}", "link"),
            Find("status", "404"),
            Back(),
            Press(f"Archive {kept}", "link"),
            Find("number", r"number is (\w+)"),
            Answer(f"{gone} is missing (404); the number is {{number}}"),
        ],
        lambda answer: has_word(answer, gone) and kept not in answer and code in answer,
    )


@bench_task("page that fails once", kind="failure")
def page_that_fails_once(site: Site, seeded: Seeded) -> Assignment:
    """The server answers 503 twice, and then with the page."""
    code, again = seeded.code(), seeded.one("Try again", "Reload", "Once more")
    site.state["asked"] = 0

    @site.view("/")
    def flaky(request: SiteRequest) -> SiteResponse | str:
        site.state["asked"] += 1
        if site.state["asked"] < 3:
            text = page("Busy", f"<h1>503</h1><p>Busy now.</p><a href=/>{again}</a>")
            return SiteResponse(text, status=503)
        return page("Ready", f"<h1>Ready</h1><p>The word is {code}</p>")

    return Assignment(
        f"Which word is at {site.url}/? The page may fail at first.",
        [
            Open(f"{site.url}/"),
            Until("word is", [Press(again, "link")], limit=4),
            Find("word", r"word is (\w+)"),
            Answer("{word}"),
        ],
        lambda answer: code in answer,
    )


@bench_task("slow page", kind="slow")
def slow_page(site: Site, seeded: Seeded) -> Assignment:
    """A page whose first byte takes seven seconds, reached by a link."""
    code, label = seeded.code(), seeded.one("The slow report", "Big report")
    site.add("/", page("Start", f"<h1>Start</h1><a href=/slow>{label}</a>"))

    @site.view("/slow")
    def slow(request: SiteRequest) -> str:
        time.sleep(SLOW_S)
        return page("Report", f"<h1>Report</h1><p>The word is {code}</p>")

    return Assignment(
        f'Which word is in "{label}" at {site.url}/? It takes a while.',
        [
            Open(f"{site.url}/"),
            Press(label, "link"),
            Find("word", r"word is (\w+)"),
            Answer("{word}"),
        ],
        lambda answer: code in answer and site.log.count("GET /slow") == 1,
    )


@bench_task("back", kind="history")
def back(site: Site, seeded: Seeded) -> Assignment:
    """A page without a link back, and a start page that says another word the second time."""
    words = [seeded.code(), seeded.code()]
    site.state["seen"] = 0
    label = seeded.one("Continue", "Further")

    @site.view("/")
    def start(request: SiteRequest) -> SiteResponse:
        word = words[min(site.state["seen"], 1)]
        text = page("Start", f"<h1>Start</h1><p>The word is {word}</p><a href=/end>{label}</a>")
        return SiteResponse(text, headers={"Cache-Control": "no-store"})

    @site.view("/end")
    def end(request: SiteRequest) -> str:
        site.state["seen"] += 1
        return page("End", "<h1>End</h1><p>Go back in your browser.</p>")

    return Assignment(
        f'Follow "{label}" at {site.url}/, go back, and answer with the word that is there then.',
        [
            Open(f"{site.url}/"),
            Press(label, "link"),
            Find("end", "Go back"),
            Back(),
            Find("word", r"word is (\w+)"),
            Answer("{word}"),
        ],
        lambda answer: words[1] in answer and words[0] not in answer,
    )


POLL = read_script("poll")


@bench_task("work that finishes later", kind="wait")
def work_that_finishes_later(site: Site, seeded: Seeded) -> Assignment:
    """A result that appears about two seconds after the click."""
    code, press = seeded.code(), seeded.one("Start", "Calculate", f"Count every {THINGS[0]}")
    site.state["started"] = 0.0
    site.add("/", page("Work", f"<h1>Work</h1><button>{press}</button><p id=out></p>", script=POLL))

    @site.view("/start")
    def start(request: SiteRequest) -> SiteResponse:
        site.state["started"] = time.monotonic()
        return as_json({})

    @site.view("/state")
    def state(request: SiteRequest) -> SiteResponse:
        done = time.monotonic() - site.state["started"] > 2
        return as_json({"done": done, "code": code if done else ""})

    return Assignment(
        f'Press "{press}" at {site.url}/ and answer with the code that it ends with.',
        [
            Open(f"{site.url}/"),
            Press(press, "button"),
            WaitFor("Finished"),
            Find("code", r"Finished: (\w+)"),
            Answer("{code}"),
        ],
        lambda answer: code in answer,
    )
