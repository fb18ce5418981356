"""When a page is read: complete once it is idle, in its current state if it never is."""

from __future__ import annotations

import time
from typing import Any

import pytest

from runners.browser.reading import page_reader
from runners.errors import InvalidTarget, NavigationFailed, NavigationTimeout
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer, html


def timed(reader: Reader, url: str, **options: Any) -> tuple[Any, float]:
    started_at = time.monotonic()
    page = reader(url, **options)
    return page, time.monotonic() - started_at


@pytest.mark.parametrize("path", ["/script-rendered", "/xhr"])
def test_a_page_that_scripts_fill_in_is_read_complete(
    reader: Reader, page_server: PageServer, path: str
) -> None:
    assert "fetched at last" in reader.text(page_server.url(path))


def test_a_page_whose_script_arrives_in_pieces_is_read_complete(
    reader: Reader, page_server: PageServer
) -> None:
    script = b"document.getElementById('app').textContent = 'the piece has come, and filled it'"
    page_server.add("/chunk.js", PageResponse(script, mime="text/javascript", delay=0.25))
    assert "the piece has come" in reader.text(page_server.url("/dynamic-script"))


def test_what_load_listeners_and_zero_timers_write_is_read(
    reader: Reader, page_server: PageServer
) -> None:
    body = """<!doctype html><p id=a>-<p id=b>-<p>Enough words to be no empty shell of a page.
      <script>
      addEventListener('load', () => { a.textContent = 'A';
        setTimeout(() => b.textContent = 'B') })
      </script>"""
    assert reader.text(page_server.add("/late", body)).split()[:2] == ["A", "B"]


@pytest.mark.slow
def test_an_idle_page_is_not_waited_for(reader: Reader, page_server: PageServer) -> None:
    page_server.add("/static", "<title>S</title>" + "<p>Text that needs no script at all." * 20)
    timed(reader, page_server.url("/static"))
    assert min(timed(reader, page_server.url("/static"))[1] for _ in range(3)) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/hanging-image", "still loading"),
        ("/long-poll", "still requesting"),
        ("/endless-requests", "still requesting"),
    ],
)
def test_a_page_that_is_never_idle_is_read_after_three_seconds_with_a_warning(
    reader: Reader, page_server: PageServer, path: str, reason: str
) -> None:
    page, seconds = timed(reader, page_server.url(path))
    assert [reason in warning for warning in page["warnings"]] == [True]
    assert page["content"]["sections"]
    assert 3.0 <= seconds < 8.0


@pytest.mark.slow
def test_a_page_whose_timers_never_end_is_read_without_a_warning(
    reader: Reader, page_server: PageServer
) -> None:
    page, seconds = timed(reader, page_server.url("/endless-timers"))
    assert page["warnings"] == []
    assert seconds < 3.0


def test_a_page_that_clears_all_timers_does_not_stop_the_reader(
    reader: Reader, page_server: PageServer
) -> None:
    assert "new" in reader.text(page_server.url("/clears-timers"))


@pytest.mark.parametrize("path", ["/redirect", "/script-redirect", "/meta-refresh"])
def test_a_page_that_redirects_is_read_at_its_final_address(
    reader: Reader, page_server: PageServer, path: str
) -> None:
    page = reader(page_server.url(path))
    assert (page["url"], page["title"]) == (page_server.url("/plain"), "Plain")


def test_a_page_that_reloads_without_end_fails(reader: Reader, page_server: PageServer) -> None:
    started_at = time.monotonic()
    messages = []
    try:
        messages = reader(page_server.url("/reload-loop"))["warnings"]  # read between two documents
    except NavigationFailed as failure:
        messages = [failure.message]
    assert ["navigating to other" in line for line in messages] == [True]
    assert time.monotonic() - started_at < 20


def test_a_page_whose_connection_closes_in_the_middle_fails_at_once(
    reader: Reader, page_server: PageServer
) -> None:
    length = {"Content-Length": "90000", "Connection": "close"}
    url = page_server.add("/cut", html("<title>Cut</title>" + "<p>x</p>" * 5000, headers=length))
    error = reader.call("open_page", url=url).error or {}
    assert error["details"]["netError"] == "ERR_CONTENT_LENGTH_MISMATCH"
    assert "closed the connection in the middle" in error["message"]
    assert reader(page_server.url("/plain"))["title"] == "Plain"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "seconds"), [("/never", 4.0), ("/half", 4.0), ("/busy-loop", 5.0)]
)
def test_a_page_that_does_not_load_fails_within_the_timeout_of_the_caller(
    reader: Reader, page_server: PageServer, path: str, seconds: float
) -> None:
    started_at = time.monotonic()
    failure = reader.failure(page_server.url(path), seconds=seconds)
    assert isinstance(failure, NavigationTimeout)
    assert failure.retryable
    assert time.monotonic() - started_at < seconds
    assert reader(page_server.url("/plain"))["title"] == "Plain"


@pytest.mark.slow
def test_a_script_that_hangs_after_loading_is_stopped_and_the_page_is_read(
    reader: Reader, page_server: PageServer
) -> None:
    page, seconds = timed(reader, page_server.url("/late-busy-loop"))
    assert page["title"] == "Late"
    assert "It came first." in page["content"]["sections"][0]["text"]
    assert "hung" in page["warnings"][0]
    assert seconds < 15


APPEARS = """<!doctype html><title>W</title><p>start<script>
  setTimeout(() => { document.body.insertAdjacentHTML('beforeend', '<div id=late>here now</div>');
    history.pushState({}, '', '/appears?done=1') }, 700)</script>"""


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "selector", "value": "#late"},
        {"type": "textIncludes", "value": "here now"},
        {"type": "urlContains", "value": "done=1"},
    ],
)
def test_a_condition_is_waited_for(
    reader: Reader, page_server: PageServer, condition: dict[str, str]
) -> None:
    url = page_server.add("/appears", APPEARS)
    assert "here now" not in reader.text(url)
    assert "here now" in reader.text(url, waitFor=condition)


@pytest.mark.slow
def test_the_caller_can_wait_until_a_page_is_idle(reader: Reader, page_server: PageServer) -> None:
    body = """<p id=p>0</p><script>let n = 0;
      const t = setInterval(() => { p.textContent = ++n; if (n === 8) clearInterval(t) }, 200)
      </script>"""
    url = page_server.add("/ticks", f"<!doctype html><title>Ticks</title>{body}")
    assert "8" in reader.text(url, waitFor={"type": "stable"})


def test_a_condition_is_met_on_the_page_that_the_first_one_redirects_to(
    reader: Reader, page_server: PageServer
) -> None:
    url = page_server.add(
        "/first", "<p>first<script>setTimeout(() => location = '/plain', 900)</script>"
    )
    page = reader(url, waitFor={"type": "urlContains", "value": "/plain"})
    assert page["title"] == "Plain"


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "selector", "value": "#never"},
        {"type": "selector", "value": "[hidden]"},
        {"type": "textIncludes", "value": "never"},
        {"type": "urlContains", "value": "never"},
    ],
)
def test_a_condition_that_is_not_met_in_time_is_a_timeout(
    reader: Reader, page_server: PageServer, condition: dict[str, str]
) -> None:
    url = page_server.add("/unmet", "<p>text<p hidden>x")
    failure = reader.failure(url, waitFor={**condition, "timeoutMs": 300})
    assert failure.code == "NAVIGATION_TIMEOUT"
    assert failure.details["waitFor"] == {**condition, "timeoutMs": 300}


def test_an_invalid_selector_is_an_invalid_parameter(
    reader: Reader, page_server: PageServer
) -> None:
    condition = {"type": "selector", "value": "p[["}
    failure = reader.failure(page_server.url("/plain"), waitFor=condition)
    assert isinstance(failure, InvalidTarget)


def test_functions_that_scripts_patch_still_look_native_and_work(
    reader: Reader, page_server: PageServer
) -> None:
    body = """<p id=p></p><script>(async () => {
      const looks = [fetch, setTimeout, clearTimeout, XMLHttpRequest.prototype.send,
        Response.prototype.json].every((f) => /\\[native code\\]/.test(String(f)));
      const names = [fetch.name, setTimeout.length, Object.keys(window).includes('fetch')];
      const id = setTimeout(() => { p.textContent = 'not cleared' }, 50); clearTimeout(id);
      const order = await new Promise((done) => setTimeout((a, b) => done(a + b), 10, 'x', 'y'));
      let refused = ''; try { await fetch('http://[') } catch (e) { refused = e.constructor.name }
      const answer = await (await fetch('/data.json')).json();
      p.textContent = [looks, ...names, order, refused, answer.name].join(' ') })()</script>"""
    text = reader.text(page_server.add("/native", f"<!doctype html><title>N</title>{body}"))
    assert "true fetch 1 true xy TypeError x" in text


def test_the_ticket_between_reader_and_page_is_not_on_the_page(
    reader: Reader, page_server: PageServer
) -> None:
    body = """<p id=p></p><script>p.textContent = 'own: ' + Object.getOwnPropertyNames(window)
      .concat(Object.getOwnPropertySymbols(window).map(String)).filter((n) => /contin/i.test(n))
      + '.'</script><p>Some more words for the page."""
    assert "own: ." in reader.text(page_server.add("/own", f"<!doctype html>{body}"))


@pytest.mark.parametrize(
    ("late", "reason", "says"),
    [
        ({"delay": 3600.0}, "no_answer", "did not answer within 1 s"),
        ({"hang": 3600.0}, "unfinished", "answered, but the page did not finish loading"),
    ],
)
def test_a_server_that_is_late_is_not_a_condition_that_is_too_strict(
    reader: Reader,
    page_server: PageServer,
    monkeypatch: pytest.MonkeyPatch,
    late: dict[str, float],
    reason: str,
    says: str,
) -> None:
    monkeypatch.setattr(page_reader, "PARSE_SECONDS", 1.0)
    failure = reader.failure(page_server.add("/late", html("<p>text</p>" * 99, **late)))
    assert (failure.code, failure.details["reason"]) == ("NAVIGATION_TIMEOUT", reason)
    assert says in failure.message
    assert "condition" not in failure.recovery


@pytest.mark.slow
def test_a_slow_server_is_waited_for(reader: Reader, page_server: PageServer) -> None:
    page_server.add("/slow2", html("<title>Slow</title><p>Late, but here.", delay=2.0))
    assert reader(page_server.url("/slow2"))["title"] == "Slow"
