"""Run the real server in a thread of this process, so that it uses the test's database."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import uvicorn
from django.db import connections

from decisions.foundation.infra import threads
from runs.management.commands.serve import WebServer
from runs.operations.home.listen import listen

TIMEOUT_S = 60.0


@contextlib.contextmanager
def run_server(config: uvicorn.Config) -> Iterator[str]:
    """Serve on a free port for the length of the block; yield the address."""
    listener = listen(None)
    server = WebServer(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="web")
    thread.start()
    deadline = time.monotonic() + TIMEOUT_S
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(TIMEOUT_S)
        listener.close()
    assert not thread.is_alive()


def close_pooled_connections() -> None:
    """Close the database connections of the server's threads, so that pytest can drop it."""
    pool = threads._pool
    if not pool._threads:
        return
    barrier = threading.Barrier(len(pool._threads))

    def close() -> None:
        connections.close_all()
        for one in connections.all(initialized_only=True):
            one.execute_wrappers.clear()
        barrier.wait(TIMEOUT_S)  # so that every thread of the pool runs `close` once

    for call in [pool.submit(close) for _ in range(barrier.parties)]:
        call.result()
