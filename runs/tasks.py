"""What Celery runs: a doorbell was heard. Ids in, one call; the rules are in runs.worker.worker and
runs.execution.engine.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from celery import shared_task
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down

from runs.queue import outbox, wakeup_dedup
from runs.worker.worker import WorkerProcess

DRAIN_S = 6.0
_consumers: list[Any] = []  # Celery's own, once it is up


def _listen_to(worker_id: str) -> None:
    """Hear the bells of this worker's new name too, from Celery's own thread."""
    for consumer in _consumers:
        consumer.call_soon(consumer.add_task_queue, outbox.worker_queue(worker_id))


_place = WorkerProcess(os.environ.get("CONTINUITY_WORKER_ID"), renamed=_listen_to)


@shared_task(name="runs.work")
def work(run_id: str = "", **ignored: Any) -> None:
    """Do the work there is, whichever run the message names; later versions may send more
    arguments.
    """
    _place.open()
    wakeup_dedup.mark_received()
    if _place.draining:
        outbox.send_wakeup(wakeup_dedup.SHARED_QUEUE, run_id)  # nobody looks here: whoever hears it does
    _place.work()


@worker_ready.connect
def _open(sender: Any = None, **kwargs: Any) -> None:
    _consumers[:] = [sender] if sender is not None else []
    _place.open()


@worker_shutting_down.connect
def _drain(**kwargs: Any) -> None:
    exit_hard_after(DRAIN_S)
    _place.drain()


@worker_shutdown.connect
def _close(**kwargs: Any) -> None:
    _place.close()


def exit_hard_after(seconds: float) -> None:
    """End the process after this long whatever still runs: the last resort of a shutdown
    (mechanisms 6).
    """
    timer = threading.Timer(seconds, os._exit, args=(0,))
    timer.daemon = True
    timer.start()
