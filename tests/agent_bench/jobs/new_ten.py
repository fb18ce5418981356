"""The ten new jobs, as a host did them, in the same way as the first ten."""

from __future__ import annotations

from typing import Any

from tests.agent_bench.jobs.addresses import Addresses
from tests.agent_bench.jobs.first_ten import find, read_pages, sentence
from tests.agent_bench.jobs.host import JobHost
from tests.agent_bench.jobs.manual import COMMANDS, WITH_PARAMETERS


def two_facts(host: JobHost, at: Addresses) -> dict[str, str]:
    """From the first page to the index and the list of appendixes, then both pages in one run."""
    start = read_pages(host, f"{at.manual}/index.html")
    links = find(host, start, r"\[(?:Index|A\. PostgreSQL Error Codes)\]\((\S+)\)")["0"]
    index = read_pages(host, f"{at.manual}/{links[-1]}")
    listed = find(host, index, r"wal_sender_timeout configuration[^(]*\(([^)#]+)")["0"][0]
    pages = read_pages(host, f"{at.manual}/{listed}", f"{at.manual}/{links[0]}")
    found = find(host, pages, r"(?s)(wal_sender_timeout` \(.{0,320})|.{20}deadlock_detected")
    code = next(word for word in str(found["1"]).split() if len(word.strip("`|[]'")) == 5)
    timeout = next(text for text in (str(one) for one in found["0"]) if "default value" in text)
    return {"wal_sender_timeout": sentence(timeout), "deadlock_detected": code.strip("`|[]'")}


def purposes(host: JobHost, at: Addresses) -> dict[str, str]:
    """One run, and the line with a dash of each page."""
    run = read_pages(
        host,
        *(f"{at.manual}/sql-{command}.html" for command in COMMANDS),
        options={"mode": "sync"},
    )
    found = find(host, run, r"(?m)^[A-Z ]+ — (.+)$")
    return {command: found[str(item)][0] for item, command in enumerate(COMMANDS)}


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
    """Submit, be killed, wait, and take the codes out of the texts."""
    urls = [f"{at.site}/item/{number}?slow=1" for number in range(1, 41)]
    run = read_pages(host, *urls, options={"mode": "async", "idempotencyKey": "forty"})
    host.restart()
    host.call("wait_task_run", runId=run, brief=True)
    found = find(host, run, r"Code: (\w+)")
    return {int(item) + 1: codes[0] for item, codes in found.items()}


JOBS = {
    11: two_facts,
    12: purposes,
    17: parameters,
    18: conditions,
    19: forty_pages,
}
