"""nginx with the shipped configuration in front of a server, on free ports of loopback."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.programs import PATH
from tests.support.runners.self_signed_certificate import create_certificate

CONFIGURATION = Path(__file__).parents[3] / "deploy" / "proxy" / "nginx.conf"
NGINX = shutil.which("nginx", path=PATH)
PROXY_ADDRESS = "127.0.0.2"  # of nginx' connections to the server


@dataclass(frozen=True)
class TlsProxy:
    """A running proxy."""

    https: str
    http: str
    tls: ssl.SSLContext


@contextlib.contextmanager
def run_proxy(
    server: str, folder: Path, changes: Mapping[str, str] | None = None
) -> Iterator[TlsProxy]:
    """Run nginx in front of a server for the length of the block.

    Args:
        server: the server's address, such as http://127.0.0.1:8000.
        changes: further texts of the configuration and their replacements, such as time limits.
    """
    https, http = _free_port(), _free_port()
    certificate = folder / "fullchain.pem"
    create_certificate(certificate, folder / "privkey.pem")
    configuration = _configuration(
        {
            "/tmp/": f"{folder}/",
            "listen 8443 ssl http2;": f"listen 127.0.0.1:{https} ssl http2;",
            "listen 8080;": f"listen 127.0.0.1:{http};",
            "set $continuity http://web:8000;": f"proxy_bind {PROXY_ADDRESS};"
            f" set $continuity {server};",
            "    resolver 127.0.0.11 valid=2s;\n": "",
            "/etc/continuity/tls": str(folder),
            "user www-data;": "user root;",  # whose processes may enter the test's folder
            **(changes or {}),
        }
    )
    path = folder / "nginx.conf"
    path.write_text(configuration)
    assert NGINX is not None
    with (folder / "nginx.log").open("w") as log:
        process = subprocess.Popen(
            [NGINX, "-c", str(path), "-p", str(folder), "-g", "daemon off;"],
            stdin=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        _wait_until_listening(https, process, folder / "nginx.log")
        tls = ssl.create_default_context(cafile=str(certificate))
        yield TlsProxy(f"https://127.0.0.1:{https}", f"http://127.0.0.1:{http}", tls)
    finally:
        process.terminate()
        process.wait(20)


def _configuration(changes: Mapping[str, str]) -> str:
    text = CONFIGURATION.read_text()
    for old, new in changes.items():
        assert old in text, f"nginx.conf lacks {old!r}"
        text = text.replace(old, new)
    return text


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _wait_until_listening(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert process.poll() is None, log.read_text()
        time.sleep(0.02)
    raise AssertionError(f"nginx does not listen: {log.read_text()}")
