"""Whether a web process answers, asked over HTTP: `manage.py status` and `doctor` do."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

PROBE_S = 3.0


def describe_web_fault(url: str) -> str | None:
    """Return what is wrong with the web process at a URL, or None; takes PROBE_S at most.

    A process that hangs accepts the connection, by its kernel, and does not answer.
    """
    address = urlsplit(url)
    connection = http.client.HTTPConnection(
        address.hostname or "127.0.0.1", address.port or 80, timeout=PROBE_S
    )
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except TimeoutError:
        return f"hung: no answer within {PROBE_S:.0f} s"
    except (OSError, http.client.HTTPException) as error:
        return f"does not answer ({type(error).__name__})"
    finally:
        connection.close()
    return None if status < 500 else f"answers {status}"
