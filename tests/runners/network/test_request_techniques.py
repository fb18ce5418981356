"""Every way in which a page can request an address: for a remote caller all are blocked.

The test's server counts requests at the forbidden address itself. A local caller reaches it with
the same pages, which shows that each test can fail.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from runners.browser.pool import runtime
from runners.browser.pool.chromium import launch_args
from runners.browser.pool.runtime import BrowserRuntime
from runners.browser.session.session import OpenBrowserSession
from runners.invocation.event_loop import LoopThread
from tests.support.browser.forbidden_server import PUBLIC, ForbiddenServer
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer, html

SECONDS = 8.0
QUIET_SECONDS = 2.0  # for packets that must not arrive; unblocked ones take 0.1 s
SECURE = {"service worker", "shared worker", "speculation", "web transport", "module preload"}
TECHNIQUES: dict[str, str] = {
    "meta refresh": "<meta http-equiv=refresh content='0;url={url}'>",
    "script location": "<script>location.href = '{url}'</script>",
    "script replace": "<script>location.replace('{url}')</script>",
    "iframe": "<iframe src='{url}'></iframe>",
    "iframe in srcdoc": "<iframe srcdoc=\"<img src='{url}'>\"></iframe>",
    "frame in a blob": """<iframe id=f></iframe><script>f.src = URL.createObjectURL(
        new Blob(['<img src={url}>'], {{type: 'text/html'}}))</script>""",
    "frame of data": "<iframe src=\"data:text/html,<img src='{url}'>\"></iframe>",
    "image": "<img src='{url}'>",
    "script": "<script src='{url}'></script>",
    "style sheet": "<link rel=stylesheet href='{url}'>",
    "style import": "<style>@import '{url}';</style>",
    "font": "<style>@font-face {{font-family: f; src: url({url})}} p {{font-family: f}}</style>"
    "<p>text",
    "icon of a cursor": "<style>p {{background: url({url})}}</style><p>text",
    "fetch": "<script>fetch('{url}').catch(() => 0)</script>",
    "fetch without cors": "<script>fetch('{url}', {{mode: 'no-cors'}}).catch(() => 0)</script>",
    "request": "<script>x = new XMLHttpRequest; x.open('GET', '{url}'); x.send()</script>",
    "beacon": "<script>navigator.sendBeacon('{url}', 'x')</script>",
    "event source": "<script>new EventSource('{url}')</script>",
    "web socket": "<script>new WebSocket('{url}'.replace('http', 'ws'))</script>",
    "worker": "<script>new Worker(URL.createObjectURL(new Blob([\"fetch('{url}')\"])))</script>",
    "shared worker": """<script>new SharedWorker(
        URL.createObjectURL(new Blob(["fetch('{url}', {{mode: 'no-cors'}})"])))</script>""",
    "service worker": "<script>navigator.serviceWorker.register('/worker.js')</script>",
    "download link": "<a id=a href='{url}' download>x</a><script>a.click()</script>",
    "prefetch": "<link rel=prefetch href='{url}'>",
    "preload": "<link rel=preload as=image href='{url}'>",
    "module preload": "<link rel=modulepreload href='{url}'>",
    "speculation": """<script type=speculationrules>
        {{"prefetch": [{{"urls": ["{url}"], "eagerness": "immediate"}}]}}</script>""",
    "form": "<form id=f action='{url}' method=post></form><script>f.submit()</script>",
    "form in a frame": "<iframe name=n></iframe><form id=f action='{url}' target=n></form>"
    "<script>f.submit()</script>",
    "popup": "<script>open('{url}')</script>",
    "ping": "<a id=a href='#x' ping='{url}'>x</a><script>a.click()</script>",
    "object": "<object data='{url}'></object>",
    "embed": "<embed src='{url}'>",
    "video": "<video src='{url}'></video>",
    "audio": "<audio src='{url}' preload=auto></audio>",
    "svg image": "<svg><image href='{url}' width=9 height=9 /></svg>",
    "fetch that outlives its page": """<script>
        fetch('{url}', {{keepalive: true, mode: 'no-cors'}}).catch(() => 0)</script>""",
    "redirected image": "<img src='/redirect'>",
    "turn": """<script>p = new RTCPeerConnection({{iceServers: [
        {{urls: 'turn:{host}?transport=tcp', username: 'u', credential: 'c'}}]}});
        p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o))</script>""",
}
# These requests bypass the proxy, so no refusal is recorded that a test could wait for.
PACKETS: dict[str, str] = {
    "stun": """<script>p = new RTCPeerConnection({{iceServers: [{{urls: 'stun:{host}'}}]}});
        p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o))</script>""",
    "web transport": """<script>t = new WebTransport('https://{host}/');
        t.ready.catch(() => 0); t.closed.catch(() => 0)</script>""",
}
# Without a proxy, TURN over TCP is off as well: the WebRTC policy allows no direct connection.
ONLY_BY_PROXY = {"turn"}


def publish_page(markup: str, server: PageServer, forbidden_server: ForbiddenServer) -> str:
    """Publish a page that requests the forbidden address this way; return its path."""
    url = forbidden_server.url()
    body = f"<title>Page</title>{markup.format(url=url, host=f'127.0.0.1:{forbidden_server.port}')}"
    server.add("/page", html(body))
    server.add("/redirect", PageResponse(status=302, headers={"Location": url}))
    worker = f"fetch('{url}', {{mode: 'no-cors'}}).catch(() => 0)"
    server.add("/worker.js", PageResponse(worker.encode(), mime="text/javascript"))
    return "/page"


async def visit(session: OpenBrowserSession, url: str, is_over: Callable[[], bool]) -> None:
    """Open a page and stay on it until `is_over` or until the time limit."""
    async with session.tab() as tab:
        await tab.page.goto(url, wait_until="commit")
        until = time.monotonic() + SECONDS
        while not is_over() and time.monotonic() < until:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.1)


def was_refused(reader: Reader, forbidden_server: ForbiddenServer) -> bool:
    proxy = reader.session._proxy
    return (
        proxy is not None
        and proxy.failed_connections.get("127.0.0.1", forbidden_server.port) == "forbidden"
    )


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_a_remote_caller_reaches_the_forbidden_address_in_no_way(
    remote_reader: Reader,
    page_server: PageServer,
    forbidden_server: ForbiddenServer,
    technique: str,
) -> None:
    path = publish_page(TECHNIQUES[technique], page_server, forbidden_server)
    # Workers and the like need a secure context; here the egress rule allows loopback's port.
    host = "127.0.0.1" if technique in SECURE else PUBLIC
    url = f"http://{host}:{page_server.server_port}{path}"
    remote_reader.wait(
        visit(remote_reader.session, url, lambda: was_refused(remote_reader, forbidden_server))
    )
    assert was_refused(remote_reader, forbidden_server), (
        "the page sent no request, so the test proves nothing"
    )
    assert forbidden_server.visits == 0


@pytest.mark.parametrize(
    "technique",
    [
        pytest.param(technique, marks=[pytest.mark.slow] if number % 5 else [])
        for number, technique in enumerate(sorted(set(TECHNIQUES) - ONLY_BY_PROXY))
    ],
)
def test_a_local_caller_reaches_the_forbidden_address_in_every_way(
    reader: Reader, page_server: PageServer, forbidden_server: ForbiddenServer, technique: str
) -> None:
    path = publish_page(TECHNIQUES[technique], page_server, forbidden_server)
    reader.wait(visit(reader.session, page_server.url(path), lambda: forbidden_server.visits > 0))
    assert forbidden_server.visits > 0


@pytest.mark.parametrize("technique", PACKETS)
def test_no_packet_of_a_remote_callers_page_reaches_the_address(
    remote_reader: Reader,
    page_server: PageServer,
    forbidden_server: ForbiddenServer,
    technique: str,
) -> None:
    publish_page(PACKETS[technique], page_server, forbidden_server)
    until = time.monotonic() + QUIET_SECONDS
    is_over = lambda: time.monotonic() > until  # noqa: E731
    remote_reader.wait(visit(remote_reader.session, page_server.url("/page"), is_over))
    assert forbidden_server.visits == 0


@pytest.mark.slow
@pytest.mark.parametrize("technique", PACKETS)
def test_packets_reach_the_address_without_the_switches_and_the_proxy(
    page_server: PageServer,
    forbidden_server: ForbiddenServer,
    browser_loop: LoopThread,
    monkeypatch: pytest.MonkeyPatch,
    technique: str,
) -> None:
    plain = [switch for switch in launch_args() if "webrtc" not in switch]
    monkeypatch.setattr(runtime, "launch_args", lambda: plain)
    publish_page(PACKETS[technique], page_server, forbidden_server)
    unguarded = BrowserRuntime()
    session = OpenBrowserSession(unguarded.browser, run_id="run_test", trust="local")
    try:
        visiting = visit(session, page_server.url("/page"), lambda: forbidden_server.udp > 0)
        browser_loop.submit(visiting).result(60)
    finally:
        browser_loop.submit(session.close()).result(30)
        browser_loop.submit(unguarded.close()).result(30)
    assert forbidden_server.udp > 0
