"""The ten new jobs, as a host did them, in the same way as the first ten."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.trials.agent_bench.jobs.addresses import Addresses
from tests.trials.agent_bench.jobs.first_ten import (
    NO_TEXT,
    codes_after_a_kill,
    find,
    read_pages,
    reason_in,
    sentence,
)
from tests.trials.agent_bench.jobs.host import JobHost
from tests.trials.agent_bench.jobs.manual import COMMANDS, WITH_PARAMETERS
from tests.trials.agent_bench.jobs.right_answers import BOOKING
from tests.trials.agent_bench.solver.observation import PageView, read_observation


def two_facts(host: JobHost, at: Addresses) -> dict[str, str]:
    """From the first page to the index and the list of appendixes, then both pages in one run."""
    start = read_pages(host, f"{at.manual}/index.html")
    links = find(host, start, r"\[(?:Index|A\. PostgreSQL Error Codes)\]\((\S+)\)")["0"]
    index = read_pages(host, f"{at.manual}/{links[-1]}")
    listed = find(host, index, r"wal_sender_timeout configuration[^(]*\(([^)#]+)")["0"][0]
    pages = read_pages(host, f"{at.manual}/{listed}", f"{at.manual}/{links[0]}")
    found = find(host, pages, r"(?s)wal_sender_timeout` \(.{0,320}|.{10}deadlock_detected")
    code = re.search(r"\w{5}", found["1"][0])
    assert code is not None
    return {"wal_sender_timeout": sentence(found["0"][0]), "deadlock_detected": code[0]}


def purposes(host: JobHost, at: Addresses) -> dict[str, str]:
    """One run, and the line with a dash of each page."""
    run = read_pages(
        host,
        *(f"{at.manual}/sql-{command}.html" for command in COMMANDS),
        options={"mode": "sync"},
    )
    found = find(host, run, r"(?m)^[A-Z ]+ — (.+)$")
    return {command: found[str(item)][0] for item, command in enumerate(COMMANDS)}


def act(host: JobHost, tool: str, **arguments: Any) -> PageView:
    """Perform a browser action; return the page that stands in its answer."""
    answer = host.call(tool, **arguments)
    return read_observation(answer if isinstance(answer, str) else json.dumps(answer))


def number_of(page: PageView, label: str, role: str = "") -> int:
    """Return the number of the element with a label."""
    element = page.find(label, role)
    if element is None:
        raise LookupError(label)
    return element.number


def one_time_code(host: JobHost, at: Addresses) -> list[int]:
    """Log in, read the mailbox apart, enter the code; after the host was killed, open the page in
    the same session.
    """
    started = str(host.call("task_start", url=f"{at.site}/secure"))
    session = re.search(r"sess_\w+", started)
    assert session is not None
    page = read_observation(started)
    act(host, "browser_type", clickId=number_of(page, "User name"), text=at.user)
    password = number_of(page, "Password", "input")
    page = act(host, "browser_type", clickId=password, text=at.password, submit=True)
    mailbox = read_pages(host, f"{at.site}/mailbox")
    code = find(host, mailbox, r"code is (\d+)")["0"][0]
    field = number_of(page, "One-time code")
    page = act(host, "browser_type", clickId=field, text=code, submit=True)
    limits = [_limit(page)]
    host.restart()
    page = act(host, "task_start", url=f"{at.site}/secure/account", sessionId=session[0])
    return [*limits, _limit(page)]


def _limit(page: PageView) -> int:
    found = re.search(r"Credit limit: (\d+)", page.text)
    return int(found[1]) if found else 0


def feed(host: JobHost, at: Addresses) -> dict[str, Any]:
    """Scroll until nothing new comes, and look."""
    first = act(host, "task_start", url=f"{at.site}/feed")
    page = act(host, "browser_scroll", untilNothingNew=True)  # without what the first one shows
    stories = re.findall(r"^Story \d+: .*$", f"{first.text}\n{page.text}", re.MULTILINE)
    return {"count": len(stories), "last": stories[-1].strip()}


def stock(host: JobHost, at: Addresses) -> dict[str, int]:
    """Search twice, waiting for each result; open the first lamp, and press its button."""
    page = act(host, "task_start", url=f"{at.site}/search")
    field, button = number_of(page, "Search for"), number_of(page, "Search", "button")
    act(host, "browser_type", clickId=field, text="zeppelin")
    page = act(host, "browser_click", clickId=button)
    if "Searching" in page.text:
        host.call("browser_wait_for_text", text="results")
    page = act(host, "browser_type", clickId=field, text="lamp")
    none = 0 if "No results" in page.text else -1
    act(host, "browser_click", clickId=button)
    page = act(host, "browser_wait_for_text", text="6 results")
    page = act(host, "browser_click", clickId=number_of(page, "Lamp", "link"))
    page = act(host, "browser_click", clickId=number_of(page, "Show stock"))
    found = re.search(r"(\d+) in stock", page.text)
    return {"zeppelin": none, "stock": int(found[1]) if found else -1}


def booking(host: JobHost, at: Addresses) -> str:
    """Fill the form field by field; accept the question with the click that raises it."""
    page = act(host, "task_start", url=f"{at.site}/booking")
    act(host, "browser_type", clickId=number_of(page, "Day"), text=BOOKING["day"])
    act(host, "browser_type", clickId=number_of(page, "Room"), text=BOOKING["room"])
    act(host, "browser_click", clickId=number_of(page, "Breakfast"))
    act(host, "browser_click", clickId=number_of(page, "I accept the terms"))
    book = number_of(page, "Book", "button")
    page = act(host, "browser_click", clickId=book, dialog={"accept": True})
    found = re.search(r"Booking number: (\w+)", page.text)
    return found[1] if found else ""


def parameters(host: JobHost, at: Addresses) -> dict[str, Any]:
    """Read three pages, then the terms of their parameters."""
    run = read_pages(host, *(f"{at.manual}/{name}.html" for name in WITH_PARAMETERS))
    answer = host.call(
        "read_page_content",
        runId=run,
        sections=["Parameters"],
        grep=r"(?m)^ *(?:\* *)?(\*?`[^\n]{0,60})",
        onlyMatches=True,
    )
    found = answer["found"]
    terms = {name: found[str(item)] for item, name in enumerate(WITH_PARAMETERS)}
    return {
        "described": {name: "`IF NOT EXISTS`" in listed for name, listed in terms.items()},
        "most": max(terms, key=lambda name: len(terms[name])),
    }


def conditions(host: JobHost, at: Addresses) -> list[str]:
    """From the first page to the appendix, and its rows that begin with 08."""
    start = read_pages(host, f"{at.manual}/index.html")
    link = find(host, start, r"\[A\. PostgreSQL Error Codes\]\((\S+)\)")["0"][0]
    page = read_pages(host, f"{at.manual}/{link}")
    return [str(name) for name in find(host, page, r"08\w{3}`? \| `?(\w+)")["0"]]


def forty_pages(host: JobHost, at: Addresses) -> dict[int, str]:
    """Read forty pages, some of which are slow, killed after the submit."""
    return codes_after_a_kill(host, [f"{at.site}/item/{number}?slow=1" for number in range(1, 41)])


def report(host: JobHost, at: Addresses) -> dict[str, Any]:
    """Click the download, whose text is in the answer; read the four addresses in one run."""
    page = act(host, "task_start", url=f"{at.site}/downloads")
    clicked = host.call("browser_click", clickId=number_of(page, "The report as CSV"))
    total = re.search(r"TOTAL,(\d+)", str(clicked))
    paths = {"busy": "/busy", "cut": "/cut", "loop": "/loop", "private": "/private"}
    answer = host.call(
        "run_task_template",
        templateId="batch_extract_pages",
        inputs={"urls": [at.site + path for path in paths.values()], "extract": NO_TEXT},
        options={"mode": "sync"},
    )
    result = answer["result"] or answer["error"]["details"]
    by_url = {item["url"]: json.dumps(item) for item in result["items"]}
    reasons = {name: reason_in(by_url[at.site + path]) for name, path in paths.items()}
    return {"total": int(total[1]) if total else 0, **reasons}


JOBS = {
    11: two_facts,
    12: purposes,
    13: one_time_code,
    14: feed,
    15: stock,
    16: booking,
    17: parameters,
    18: conditions,
    19: forty_pages,
    20: report,
}
