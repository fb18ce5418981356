"""A caller of the fleet on another machine: it knows the name of the proxy and its certificate."""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NAME = "continuity.example"
CERTIFICATE = Path("/etc/continuity/tls/fullchain.pem")
RATE_S = 0.05


class Caller:
    """Calls over TLS, each on a connection of its own."""

    def __init__(self, token: str = "") -> None:
        self.token = token

    def request(
        self, method: str, url: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Make a request; return status, headers and body."""
        connection = _Connection(NAME, 443, timeout=60)
        try:
            connection.request(method, url, body or None, headers or {})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read()
        finally:
            connection.close()

    def api(self, method: str, path: str, value: Any = None) -> Any:
        """Call the REST API; return its JSON.

        Raises:
            RuntimeError: The status is an error.
        """
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        body = b"" if value is None else json.dumps(value).encode()
        status, _, data = self.request(method, f"/api/v1/{path}", body, headers)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {data[:500]!r}")
        return json.loads(data)

    def is_ready(self) -> bool:
        """Return whether the installation is ready."""
        try:
            return self.request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def upload(self, content: bytes) -> tuple[str, str]:
        """Upload a file by the link that it is given; return the artifact's id and the link."""
        facts = {
            "name": "large.bin",
            "mimeType": "application/octet-stream",
            "sizeBytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        announced = self.api("POST", "artifacts/uploads", facts)
        status, _, data = self.request(
            announced["method"], path_of(announced["url"]), content, announced["headers"]
        )
        if status != 200:
            raise RuntimeError(f"PUT of an upload: {status} {data[:300]!r}")
        done = self.api("POST", f"artifacts/uploads/{announced['uploadId']}/complete", {})
        return str(done["artifactId"]), str(announced["url"])

    def download(self, artifact_id: str) -> tuple[bytes, str]:
        """Download an artifact; return its content and the link to which it was redirected."""
        headers = {"Authorization": f"Bearer {self.token}"}
        path, link = f"/api/v1/artifacts/{artifact_id}/content", ""
        status, found, data = self.request("GET", path, b"", headers)
        if status in (302, 307):
            link = found["location"]
            status, _, data = self.request("GET", path_of(link))
        if status != 200:
            raise RuntimeError(f"GET of an artifact: {status} {data[:300]!r}")
        return data, link

    def serial_number(self) -> str:
        """Return the serial number of the certificate that the proxy sends."""
        with socket.create_connection(("127.0.0.1", 443), 10) as raw:
            context = ssl.create_default_context(cafile=str(CERTIFICATE))
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with context.wrap_socket(raw, server_hostname=NAME) as secured:
                return hashlib.sha256(secured.getpeercert(binary_form=True) or b"").hexdigest()


def path_of(url: str) -> str:
    """Return the path and query of a URL of the proxy.

    Raises:
        RuntimeError: It is the URL of another server, which other machines may not reach.
    """
    parts = urlsplit(url)
    if parts.netloc not in ("", NAME):
        raise RuntimeError(f"a link leads to {parts.netloc}")
    return f"{parts.path}?{parts.query}"


class _Connection(http.client.HTTPSConnection):
    def connect(self) -> None:
        """Connect to the proxy of this machine, whatever the name server says."""
        context = ssl.create_default_context(cafile=str(CERTIFICATE))
        raw = socket.create_connection(("127.0.0.1", 443), 60)
        self.sock = context.wrap_socket(raw, server_hostname=NAME)


class Load:
    """20 requests a second until `stop`; each on a thread, so that a slow one delays no other."""

    def __init__(self, caller: Caller) -> None:
        self._caller, self._stop = caller, threading.Event()
        self._rows: list[tuple[float, float, str]] = []
        self._threads: list[threading.Thread] = []
        self._main = threading.Thread(target=self._run)
        self._main.start()

    def stop(self) -> dict[str, Any]:
        """Stop and return what was measured."""
        self._stop.set()
        self._main.join()
        for thread in self._threads:
            thread.join()
        ends = sorted(at + took for at, took, status in self._rows if status == "200")
        durations = sorted(took for _, took, _ in self._rows)
        return {
            "requests": len(self._rows),
            "statuses": dict(Counter(status for *_, status in self._rows)),
            "longest time without an answer, s": round(
                max((b - a for a, b in pairwise(ends)), default=0.0), 2
            ),
            "p99, s": round(durations[int(len(durations) * 0.99)], 2),
        }

    def _run(self) -> None:
        at = time.monotonic()
        while not self._stop.is_set():
            thread = threading.Thread(target=self._request)
            thread.start()
            self._threads.append(thread)
            at += RATE_S
            time.sleep(max(0.0, at - time.monotonic()))

    def _request(self) -> None:
        began = time.monotonic()
        headers = {"Authorization": f"Bearer {self._caller.token}"}
        try:
            status = str(self._caller.request("GET", "/api/v1/templates", b"", headers)[0])
        except OSError as error:
            status = type(error).__name__
        self._rows.append((began, time.monotonic() - began, status))
