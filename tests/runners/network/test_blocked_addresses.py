"""What a remote caller receives for a blocked address, and for other addresses that fail."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence

import pytest

from runners.errors import ToolFailed
from runners.network.allowlist import Address
from runners.network.egress import EgressPolicy
from tests.support.browser.forbidden_server import PUBLIC, ForbiddenServer, egress_policy_allowing
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import Page, PageResponse, PageServer

Publish = Callable[[str, Page | str], str]
SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "127.0.0.1.",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
]


def check_refusal(failure: ToolFailed, host: str = "127.0.0.1") -> None:
    assert (failure.code, failure.retryable) == ("TRUST_LEVEL_NOT_ALLOWED", False)
    assert failure.recovery
    assert failure.details == {"cause": "URL_BLOCKED", "host": host}


def redirect_to(url: str, status: int) -> PageResponse:
    return PageResponse(status=status, headers={"Location": url})


@pytest.mark.parametrize("host", SPELLINGS)
def test_no_spelling_of_the_address_is_opened(
    remote_reader: Reader, forbidden_server: ForbiddenServer, host: str
) -> None:
    failure = remote_reader.failure(forbidden_server.url(host))
    assert (failure.code, failure.retryable) == ("TRUST_LEVEL_NOT_ALLOWED", False)
    assert forbidden_server.visits == 0


@pytest.mark.parametrize("host", [*SPELLINGS, "inside.example"])
def test_no_spelling_of_the_address_is_loaded_into_a_page(
    remote_reader: Reader, publish: Publish, forbidden_server: ForbiddenServer, host: str
) -> None:
    page = remote_reader(
        publish("/page", f"<title>T</title><p>text<img src='{forbidden_server.url(host)}'>")
    )
    assert page["title"] == "T"
    (warning,) = page["warnings"]
    assert warning.startswith("Blocked: the page requested ")
    assert forbidden_server.visits == 0


def test_a_name_that_resolves_to_a_private_address_is_not_opened(
    remote_reader: Reader, forbidden_server: ForbiddenServer
) -> None:
    check_refusal(remote_reader.failure(forbidden_server.url("inside.example")), "inside.example")
    assert forbidden_server.visits == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_private_address_is_a_blocked_document(
    remote_reader: Reader, publish: Publish, forbidden_server: ForbiddenServer, status: int
) -> None:
    url = publish(
        "/hop", redirect_to(publish("/hop2", redirect_to(forbidden_server.url(), status)), 302)
    )
    check_refusal(remote_reader.failure(url))
    assert forbidden_server.visits == 0


@pytest.mark.parametrize(
    "markup",
    [
        "<meta http-equiv=refresh content='0;url={url}'>",
        "<script>location.href = '{url}'</script>",
        "<form id=f action='{url}' method=post></form><script>f.submit()</script>",
        "<script>setTimeout(() => location.replace('{url}'), 150)</script>",
    ],
)
def test_a_page_that_navigates_to_a_private_address_is_a_blocked_document(
    remote_reader: Reader, publish: Publish, forbidden_server: ForbiddenServer, markup: str
) -> None:
    check_refusal(
        remote_reader.failure(publish("/go", f"<p>x{markup.format(url=forbidden_server.url())}"))
    )
    assert forbidden_server.visits == 0
    assert remote_reader(publish("/next", "<title>Next</title>"))["title"] == "Next"


def test_a_redirect_between_public_addresses_is_followed(
    remote_reader: Reader, publish: Publish
) -> None:
    url = publish("/hop", redirect_to(publish("/there", "<title>There</title>"), 307))
    page = remote_reader(url)
    assert (page["title"], page["warnings"]) == ("There", [])


def test_blocked_requests_are_counted_and_reported_once(
    remote_reader: Reader, publish: Publish, forbidden_server: ForbiddenServer
) -> None:
    images = "".join(
        f"<img src='{forbidden_server.url(path=f'/{n}?secret=s')}'>" for n in range(30)
    )
    page = remote_reader(publish("/many", f"<title>Many</title>{images}"))
    assert page["warnings"] == [
        "Blocked: the page requested 127.0.0.1, which is not a public address (30 requests)."
    ]


@pytest.mark.slow
def test_a_page_that_requests_many_hosts_gets_a_short_list(
    remote_reader: Reader, publish: Publish
) -> None:
    images = "".join(f"<img src='http://10.0.0.{n}/'>" for n in range(1, 61))
    warnings = remote_reader(publish("/hosts", f"<title>Hosts</title>{images}"))["warnings"]
    assert len(warnings) == 21
    assert "more addresses that are not public" in warnings[-1]


@pytest.mark.slow
def test_a_blocked_request_of_a_web_worker_is_reported_too(
    remote_reader: Reader,
    page_server: PageServer,
    publish: Publish,
    forbidden_server: ForbiddenServer,
) -> None:
    code = f"fetch('{forbidden_server.url()}', {{mode: 'no-cors'}}).catch(() => 0)"
    script = f"new SharedWorker(URL.createObjectURL(new Blob([`{code}`]))); "
    wait = "await new Promise((ready) => setTimeout(ready, 400))"
    url = publish("/shared", f"<title>S</title><script type=module>{script}{wait}</script>")
    (warning,) = remote_reader(url)["warnings"]
    assert warning == (
        "Blocked: a worker or popup requested 127.0.0.1, which is not a public address."
    )
    assert forbidden_server.visits == 0


def test_the_next_page_of_a_tab_does_not_repeat_earlier_warnings(
    remote_reader: Reader, publish: Publish, forbidden_server: ForbiddenServer
) -> None:
    assert remote_reader(publish("/a", f"<p>a<img src='{forbidden_server.url()}'>"))["warnings"]
    assert remote_reader(publish("/b", "<p>b"))["warnings"] == []


def test_pages_read_concurrently_get_their_own_warnings(
    remote_reader: Reader, publish: Publish, forbidden_server: ForbiddenServer
) -> None:
    async def read_both() -> list[list[str]]:
        bad = publish("/bad", f"<p>a<img src='{forbidden_server.url()}'>")
        slow = publish("/good", "<p>b<img src=/api/slow.json>")
        pages = await asyncio.gather(remote_reader.reading(bad), remote_reader.reading(slow))
        return [page["warnings"] for page in pages]

    bad, good = remote_reader.wait(read_both())
    assert len(bad) == 1
    assert good == []


def test_a_name_that_does_not_resolve_fails_as_it_does_for_local_callers(
    remote_reader: Reader, reader: Reader
) -> None:
    url = "http://no-such-name.example/"
    remote, local = remote_reader.failure(url), reader.failure(url)
    assert (remote.code, remote.message, remote.details) == (
        local.code,
        local.message,
        local.details,
    )
    assert remote.details["netError"] == "ERR_NAME_NOT_RESOLVED"


def test_a_closed_port_fails_as_it_does_for_local_callers(
    open_remote_reader: Callable[[EgressPolicy], Reader], reader: Reader
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    failure = open_remote_reader(egress_policy_allowing(port)).failure(f"http://{PUBLIC}:{port}/")
    assert failure.details["netError"] == "ERR_CONNECTION_REFUSED"
    assert failure.code == reader.failure(f"http://127.0.0.1:{port}/").code


def test_a_page_keeps_the_first_address_of_a_name_that_changes(
    open_remote_reader: Callable[[EgressPolicy], Reader],
    page_server: PageServer,
    forbidden_server: ForbiddenServer,
) -> None:
    answers = ["127.0.0.1", "127.0.0.2", "127.0.0.1"]

    async def resolve(host: str) -> Sequence[Address]:
        return (ipaddress.ip_address(answers.pop(0)),)

    rule = egress_policy_allowing(page_server.server_port)
    reader = open_remote_reader(EgressPolicy(resolve=resolve, permits=rule.permits))
    page_server.add("/x", f"<title>X</title><img src='//{PUBLIC}:{forbidden_server.port}/'>")
    page = reader(f"http://{PUBLIC}:{page_server.server_port}/x")
    assert page["title"] == "X"
    assert len(page["warnings"]) == 1
    assert answers == ["127.0.0.2", "127.0.0.1"], "the name was resolved again"
    assert forbidden_server.visits == 0


def test_an_address_that_the_operator_allowed_is_read_and_another_port_is_not(
    open_remote_reader: Callable[[EgressPolicy], Reader],
    page_server: PageServer,
    forbidden_server: ForbiddenServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = page_server.add("/open", f"<title>Open</title><img src='{forbidden_server.url()}'>")
    reader = open_remote_reader(EgressPolicy())  # the default rule
    check_refusal(reader.failure(url))
    assert page_server.hits["/open"] == 0
    monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", f"127.0.0.1:{page_server.server_port}")
    page = reader(url)
    assert page["title"] == "Open"
    assert page["warnings"][0].startswith("Blocked: the page requested 127.0.0.1")
    check_refusal(reader.failure(forbidden_server.url()))
    assert (page_server.hits["/open"], forbidden_server.visits) == (1, 0)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "chrome://version",
        "view-source:http://a.test/",
        "ftp://a.test/",
        "data:text/html,x",
        "javascript:0",
        "blob:http://a.test/1",
        "about:blank",
    ],
)
def test_other_schemes_are_refused_for_every_caller(
    remote_reader: Reader, reader: Reader, url: str
) -> None:
    assert remote_reader.failure(url).code == reader.failure(url).code == "INVALID_PARAMETER"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "chrome://version", "view-source:{own}"])
@pytest.mark.parametrize(
    "markup", ["<iframe src='{}'></iframe>", "<script>location = '{}'</script>"]
)
def test_a_page_cannot_open_another_scheme(
    remote_reader: Reader, reader: Reader, publish: Publish, url: str, markup: str
) -> None:
    address = publish("/odd", "")
    publish("/odd", f"<title>Odd</title><p>own text{markup.format(url.format(own=address))}")
    for page in (remote_reader(address), reader(address.replace(PUBLIC, "127.0.0.1"))):
        assert page["title"] == "Odd"
        assert "root:" not in str(page)
