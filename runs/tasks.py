"""The Celery task that receives wake-ups, and the worker's start and stop by Celery's signals.

The work itself is in runs.worker.worker and runs.execution.engine.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from celery import shared_task
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down

from runs.queue import wakeups
from runs.worker.worker import WorkerProcess

DRAIN_S = 6.0
_consumers: list[Any] = []  # Celery's consumer, once it is ready


def _listen_to(worker_id: str) -> None:
    """Consume the queue of this worker's new id too, on Celery's own thread."""
    for consumer in _consumers:
        consumer.call_soon(consumer.add_task_queue, wakeups.worker_queue(worker_id))


_worker = WorkerProcess(os.environ.get("CONTINUITY_WORKER_ID"), renamed=_listen_to)


@shared_task(name="runs.work")
def work(run_id: str = "", **ignored: Any) -> None:
    """Claim and execute the runs that wait, whichever run the message names.

    `ignored` takes arguments that later versions may send.
    """
    _worker.open()
    wakeups.mark_received()
    if _worker.draining:
        wakeups.send(wakeups.SHARED_QUEUE, run_id)  # for a worker that does not drain
    _worker.work()


@worker_ready.connect
def _open(sender: Any = None, **kwargs: Any) -> None:
    _consumers[:] = [sender] if sender is not None else []
    _worker.open()
    _worker.look_for_runs()  # Redis may have been emptied while no worker was there


@worker_shutting_down.connect
def _drain(**kwargs: Any) -> None:
    exit_hard_after(DRAIN_S)
    _worker.drain()


@worker_shutdown.connect
def _close(**kwargs: Any) -> None:
    _worker.close()


def exit_hard_after(seconds: float) -> None:
    """End the process after this many seconds, even if threads still run."""
    timer = threading.Timer(seconds, os._exit, args=(0,))
    timer.daemon = True
    timer.start()
