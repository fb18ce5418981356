"""A real server in a thread of this process, so that it sees the test's database."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import uvicorn

from runs.stack.listen import listen

PATIENCE_S = 60.0


@contextlib.contextmanager
def running(config: uvicorn.Config) -> Iterator[str]:
    """Serve on a free port for the length of a block; gives the address."""
    listener = listen(None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="web")
    thread.start()
    until = time.monotonic() + PATIENCE_S
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        listener.close()
    assert not thread.is_alive()
