"""The first ten jobs, as a host did them: each function has the calls in order, and what the host
took from the answers. They were written after the answers had been seen, one at a time.
"""

from __future__ import annotations

import re
from typing import Any

from tests.trials.agent_bench.jobs.addresses import Addresses
from tests.trials.agent_bench.jobs.host import JobHost
from tests.trials.agent_bench.jobs.manual import COMPARED, SECTIONS, TWENTY
from tests.trials.agent_bench.jobs.right_answers import CITY, MESSAGE, QUARTER

NO_TEXT = {"pageInfo": False, "content": False}
WORDS = {"mode": "semantic"}


def read_pages(host: JobHost, *urls: str, **options: Any) -> str:
    """Read pages without their texts in the answer; return the runId."""
    answer = host.call(
        "run_task_template",
        templateId="batch_extract_pages",
        inputs={"urls": list(urls)},
        brief=True,
        **options,
    )
    return str(answer["runId"])


def find(host: JobHost, run_id: str, pattern: str) -> dict[str, list[Any]]:
    """Return what the pattern's groups match on the pages that a run read, by page."""
    answer = host.call("read_page_content", runId=run_id, grep=pattern, onlyMatches=True)
    found: dict[str, list[Any]] = answer["found"]
    return found


def fact(host: JobHost, at: Addresses) -> str:
    """From the manual's first page to its index, from there to the page, there the sentence."""
    start = read_pages(host, f"{at.manual}/index.html")
    link = find(host, start, r"\[Index\]\((\S+)\)")["0"][0]
    index = read_pages(host, f"{at.manual}/{link}")
    listed = find(host, index, r"autovacuum_vacuum_cost_delay\s+configuration[^(]*\(([^)#]+)")
    page = read_pages(host, f"{at.manual}/{listed['0'][0]}")
    default = find(host, page, r"(?s)autovacuum_vacuum_cost_delay.{0,420}")
    return sentence(default["0"][0])


def sentence(text: str) -> str:
    """Return the default that a text of the manual names."""
    return text.partition("default value is ")[2].partition(".")[0]


def titles(host: JobHost, at: Addresses) -> list[str]:
    """One run with all addresses; the answer has the titles."""
    answer = host.call(
        "run_task_template",
        templateId="batch_extract_pages",
        inputs={"urls": [f"{at.manual}/{name}.html" for name in TWENTY], "extract": NO_TEXT},
        options={"mode": "sync"},
    )
    return [item["title"] for item in answer["result"]["items"]]


def login(host: JobHost, at: Addresses) -> dict[str, Any]:
    """Log in once; after the host was killed, read the orders in the same browser session."""
    answer = host.call(
        "run_task_template",
        templateId="login_keep_session",
        inputs={
            "startUrl": f"{at.site}/login",
            "credentials": {"username": at.user, "password": at.password},
            "fields": {
                "username": {**WORDS, "query": "user name"},
                "password": {**WORDS, "query": "password"},
            },
            "successIndicator": {"type": "textIncludes", "value": "Balance"},
        },
    )
    session = answer["sessionId"]
    account = read_pages(host, answer["result"]["finalUrl"], sessionId=session)
    balance = find(host, account, r"Balance: (\d+)")
    host.restart()
    orders = read_pages(host, f"{at.site}/orders", sessionId=session)
    order = find(host, orders, r"Newest order: (\w+)")
    return {"balance": int(balance["0"][0]), "order": order["0"][0]}


def items(host: JobHost, at: Addresses) -> dict[str, Any]:
    """Read all pages of the list, and take names and prices out of their texts."""
    run = host.call(
        "run_task_template",
        templateId="paginated_extract",
        inputs={
            "startUrl": f"{at.site}/items",
            "pagination": {"next": {**WORDS, "query": "Next"}, "maxPages": 20},
        },
        options={"mode": "sync"},
        brief=True,
    )
    found = find(host, run["runId"], r"\[([^\]]+)\]\(item/\d+\) (\d+) EUR")
    rows = [(name, int(price)) for listed in found.values() for name, price in listed]
    dearest = max(rows, key=lambda row: row[1])[0]
    return {"count": len(rows), "dearest": dearest, "sum": sum(price for _, price in rows)}


def search(host: JobHost, at: Addresses) -> list[str]:
    """Search, and read the results in the answer."""
    answer = host.call(
        "run_task_template",
        templateId="search_extract",
        inputs={
            "startUrl": f"{at.site}/search",
            "query": "chair",
            "searchField": {**WORDS, "query": "Search for"},
            "submit": {"mode": "selector", "selector": "button"},
            "extract": {"pageInfo": False},
        },
    )
    texts = [section["text"] for section in answer["result"]["content"]["sections"]]
    return re.findall(r"\[([^\]]+)\]\(item/\d+\)", "\n".join(texts))


def form(host: JobHost, at: Addresses) -> str:
    """Send the form with all that it requires."""
    answer = host.call(
        "run_task_template",
        templateId="submit_and_verify",
        inputs={
            "startUrl": f"{at.site}/contact",
            "fields": [
                _field("mail", MESSAGE["mail"], "Mail"),
                _field("topic", MESSAGE["topic"].title(), "Topic"),
                _field("text", MESSAGE["text"], "Message"),
                _field("agree", "true", "I agree to the terms"),
            ],
            "submit": {**WORDS, "query": "Send"},
            "successIndicator": {"type": "textIncludes", "value": "receipt"},
            "extract": {"pageInfo": False},
        },
    )
    found = re.search(r"receipt: (\w+)", str(answer["result"]))
    return found[1] if found else ""


def _field(name: str, value: str, words: str) -> dict[str, Any]:
    return {"name": name, "value": value, "locator": {**WORDS, "query": words}}


def compare(host: JobHost, at: Addresses) -> dict[str, dict[str, bool]]:
    """Read three pages, and look at their headings alone."""
    run_id = read_pages(host, *(f"{at.manual}/{name}.html" for name in COMPARED))
    outline = host.call("read_page_content", runId=run_id, outline=True)
    headings = [{s["heading"] for s in page["sections"]} for page in outline["pages"]]
    return {
        name: {section: section in found for section in SECTIONS}
        for name, found in zip(COMPARED, headings, strict=True)
    }


def table(host: JobHost, at: Addresses) -> int:
    """Read the page; take the head and the city's row."""
    run_id = read_pages(host, f"{at.site}/table")
    found = find(host, run_id, rf"(?m)^\|? ?((?:City|{CITY}) .*)$")["0"]
    head, row = (re.findall(r"\w+", line) for line in found)
    return int(row[head.index(QUARTER)])


def sixty_pages(host: JobHost, at: Addresses) -> dict[int, str]:
    """Read sixty pages, killed after the submit."""
    return codes_after_a_kill(host, [f"{at.site}/item/{number}" for number in range(1, 61)])


def codes_after_a_kill(host: JobHost, urls: list[str]) -> dict[int, str]:
    """Submit, be killed, wait, and take the codes out of the texts."""
    key = f"codes of {len(urls)} pages"  # another one for each job
    run_id = read_pages(host, *urls, options={"mode": "async", "idempotencyKey": key})
    host.restart()
    host.call("wait_task_run", runId=run_id, brief=True)
    found = find(host, run_id, r"Code: (\w+)")
    return {int(item) + 1: codes[0] for item, codes in found.items()}


def failures(host: JobHost, at: Addresses) -> dict[str, str]:
    """Read all five at once; each item says what is wrong with it."""
    paths = {"missing": "/missing", "broken": "/broken", "hang": "/hang"}
    urls = {name: at.site + path for name, path in paths.items()}
    urls |= {"port": f"http://127.0.0.1:{at.closed_port}/", "host": "http://no-such-host.invalid/"}
    answer = host.call(
        "run_task_template",
        templateId="batch_extract_pages",
        inputs={"urls": list(urls.values()), "extract": NO_TEXT},
        options={"mode": "sync"},
    )
    result = answer["result"] or answer["error"]["details"]
    by_url = {item["url"].rstrip("/"): str(item) for item in result["items"]}
    return {name: reason_in(by_url[url.rstrip("/")]) for name, url in urls.items()}


REASONS = {
    "404": r"\b404\b",
    "500": r"\b500\b",
    "503": r"\b503\b",
    "401": r"\b401\b",
    "refused": r"(?i)refused",
    "not resolved": r"(?i)not resolve|name_not_resolved|unknown host|no such host",
    "redirects": r"(?i)redirect",
    "closed": r"(?i)clos|length_mismatch|reset|empty_response",
    "timeout": r"(?i)timeout|timed out|did not answer",
}


def reason_in(text: str) -> str:
    """Return the name of the reason that a text gives."""
    return next((name for name, pattern in REASONS.items() if re.search(pattern, text)), text)


JOBS = {
    1: fact,
    2: titles,
    3: login,
    4: items,
    5: search,
    6: form,
    7: compare,
    8: table,
    9: sixty_pages,
    10: failures,
}
