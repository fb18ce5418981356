"""Receive wake-ups over Celery, and try again where the broker is away or answers with errors.

Runs are found and executed without this thread too (`runs.worker.worker`). So whatever the broker
does, its worst effect is that runs are found by polling.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from typing import Any

from celery import Celery
from celery.worker import WorkController, state

from decisions.foundation.infra.outages import Outage
from runs.queue.wakeups import SHARED_QUEUE, worker_queue

PAUSE_S, MAX_PAUSE_S = 0.5, 4.0  # before the consumer is started again, doubled each time
log = logging.getLogger(__name__)


class Receiver:
    """The consumer of a worker's queues: the shared one, and the one of the worker's id."""

    def __init__(self, app: Celery, worker_id: str) -> None:
        self._app, self._worker_id = app, worker_id
        self._consumer: Any = None  # Celery's, while it is connected
        self._stopping = threading.Event()
        self._outage = Outage(
            log,
            on_failure="the broker is unavailable; this worker polls the database for runs",
            on_recovery="the broker is available again",
        )

    @property
    def is_connected(self) -> bool:
        """Whether wake-ups are received now."""
        return self._consumer is not None

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="receiver", daemon=True).start()

    def stop(self) -> None:
        """Receive no more wake-ups; takes effect within a second."""
        self._stopping.set()
        setattr(state, "should_stop", 0)  # noqa: B010  (Celery's loop ends with this exit code)

    def listen_to(self, worker_id: str) -> None:
        """Consume the queue of this worker's new id too."""
        self._worker_id = worker_id
        if (consumer := self._consumer) is not None:
            consumer.call_soon(consumer.add_task_queue, worker_queue(worker_id))

    def _run(self) -> None:
        pause_s = PAUSE_S
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                self._consume()
            except Exception as error:  # noqa: BLE001  (any failure of the broker or its client)
                self._outage.failed(error)
            self._consumer = None
            has_worked = time.monotonic() - began > MAX_PAUSE_S
            pause_s = PAUSE_S if has_worked else min(pause_s * 2, MAX_PAUSE_S)
            self._stopping.wait(pause_s)

    def _consume(self) -> None:
        """Consume until the connection breaks.

        Raises:
            Exception: What broke it.
        """
        controller = _Controller(
            app=self._app,
            pool_cls="solo",  # a wake-up only starts a thread of the worker
            concurrency=1,
            queues=f"{SHARED_QUEUE},{worker_queue(self._worker_id)}",
            hostname=f"{self._worker_id}@{socket.gethostname()}",
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            ready_callback=self._connected,
        )
        blueprint: Any = controller.blueprint  # its type lacks the class
        try:
            blueprint.start(controller)
        except SystemExit as end:  # Celery's: it was stopped, or its connection broke
            if end.__cause__ is not None and not self._stopping.is_set():
                raise ConnectionError(str(end.__cause__)) from end.__cause__
        finally:
            self._consumer = None
            controller.stop()

    def _connected(self, consumer: Any) -> None:
        self._consumer = consumer
        self._outage.recovered()


class _Controller(WorkController):
    """Celery's worker without signal handlers, which belong to the process."""

    def _send_worker_shutdown(self) -> None:
        """Do nothing: the process goes on."""
