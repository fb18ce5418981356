"""Check the rows about pages of `fixtures.test` that lead a remote caller to forbidden addresses.

The tests serve the pages from a local site that counts as public, so the addresses get its port.
The rows list one code for all; runs.md is more exact and takes precedence: a document is refused
with TRUST_LEVEL_NOT_ALLOWED, a part of a page is blocked and named in a warning.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from decisions.models import AuditEntry
from runners.browser.pool import runtime
from runners.browser.session.session import OpenBrowserSession
from tests.contract.bad_inputs import Row
from tests.support.browser.forbidden_server import (
    ForbiddenServer,
    egress_policy_allowing,
    serve_forbidden,
)
from tests.support.browser.page_server import PageResponse, serve_pages

HOST = "fixtures.test"
PAGES = {
    "iframe_to_rfc1918": "<iframe src='http://10.0.0.1/'></iframe><iframe src='{url}'></iframe>",
    # Insecure pages cannot register one; a secure page does so in
    # tests/runners/network/test_request_techniques.py.
    "service_worker_fetch_loopback": """<script>
        navigator.serviceWorker.register('/worker.js')</script>""",
    # Reading a page does not wait for sockets: this page keeps loading until its socket fails.
    "websocket_to_loopback": """<script>socket = new WebSocket('ws://{host}/');
        socket.onerror = () => fetch('/socket_failed')</script><img src='/after_socket'>""",
    "webrtc_stun_leak": """<script>p = new RTCPeerConnection({{iceServers: [
        {{urls: 'stun:{host}'}}, {{urls: 'turn:{host}', username: 'u', credential: 'c'}}]}});
        p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o))</script>""",
    "alert_loop": "<script>for (;;) alert('again')</script>",
}
NAMED_HOSTS = {
    "iframe_to_rfc1918": {"10.0.0.1", "127.0.0.1"},
    "websocket_to_loopback": {"127.0.0.1"},
}
REDIRECTS = {
    "redirect_307_to_metadata": (307, "http://169.254.169.254/latest/meta-data/"),
    "redirect_302_to_loopback": (302, "{url}"),
}


def is_about_egress(row: Row) -> bool:
    """Return whether the row is about one of these pages."""
    return HOST in str(row.input)


def check_item(row: Row, run: dict[str, Any]) -> None:
    """Check a run whose one item was refused to a remote caller: its code and one audit event."""
    error = run["error"]
    assert f"item:{error['errorCode']}" == row.expect_code
    assert f"item:{error['details']['items'][0]['error']['errorCode']}" == row.expect_code
    audited = AuditEntry.objects.filter(action="address.refused", resource_id=run["runId"])
    assert [entry.metadata["trustLevel"] for entry in audited] == ["remote"]


@dataclass(frozen=True)
class FixturesSite:
    """The site, and the forbidden server that its pages refer to."""

    port: int
    forbidden: ForbiddenServer

    def with_port(self, row: Row) -> Row:
        """Return the row with the site's port in its addresses."""
        (url,) = row.input["inputs"]["urls"]
        url_with_port = url.replace(HOST, f"{HOST}:{self.port}")
        return replace(row, input={**row.input, "inputs": {"urls": [url_with_port]}})

    def check(self, row: Row, run: dict[str, Any]) -> None:
        """Check the result of a run of the row, and that the forbidden server got no request."""
        page = urlsplit(row.input["inputs"]["urls"][0]).path.strip("/")
        audited = AuditEntry.objects.filter(action="address.refused", resource_id=run["runId"])
        hosts = [entry.metadata["host"] for entry in audited]
        if page in REDIRECTS:
            to = REDIRECTS[page][1].format(url=self.forbidden.url())
            (item,) = run["error"]["details"]["items"]
            assert run["status"] == "failed"
            assert run["error"]["errorCode"] == item["error"]["errorCode"]
            assert item["error"]["errorCode"] == "TRUST_LEVEL_NOT_ALLOWED"
            assert item["error"]["details"]["cause"] == "URL_BLOCKED"
            assert hosts == [urlsplit(to).hostname]
        elif page == "alert_loop":
            (item,) = run["error"]["details"]["items"]
            assert item["error"]["errorCode"] == row.expect_code
            assert item["error"]["details"]["reason"] == "too_many_dialogs"
        else:
            assert (run["status"], hosts) == ("succeeded", [])
            warnings = " ".join(run.get("warnings", []))
            # A page that takes more than 3 s is read while it loads: it requests the rest later.
            unnamed = [
                host
                for host in NAMED_HOSTS.get(page, ())
                if not re.search(f"requested {re.escape(host)},", warnings)
            ]
            assert unnamed == [], warnings
        assert self.forbidden.visits == 0


@pytest.fixture
def fixtures_site(monkeypatch: pytest.MonkeyPatch) -> Iterator[FixturesSite]:
    """Serve the site, and have this process's browser treat it as public."""
    with serve_pages() as server, serve_forbidden() as forbidden:
        host = f"127.0.0.1:{forbidden.port}"
        for name, markup in PAGES.items():
            body = markup.format(url=forbidden.url(), host=host)
            server.add(f"/{name}", f"<title>{name}</title><p>text{body}")
        failed = threading.Event()

        def record_failure(_: str) -> PageResponse:
            failed.set()
            return PageResponse()

        def respond_after_failure(_: str) -> PageResponse:
            failed.wait(20)
            return PageResponse()

        server.add("/socket_failed", record_failure)
        server.add("/after_socket", respond_after_failure)
        for name, (status, to) in REDIRECTS.items():
            location = {"Location": to.format(url=forbidden.url())}
            server.add(f"/{name}", PageResponse(status=status, headers=location))
        egress = egress_policy_allowing(server.server_port, {HOST: "127.0.0.1"})
        opened = partial(OpenBrowserSession, egress=egress)
        monkeypatch.setattr(runtime, "OpenBrowserSession", opened)
        yield FixturesSite(server.server_port, forbidden)
