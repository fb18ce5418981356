"""The Celery task that receives wake-ups; the work itself is in runs.worker."""

from __future__ import annotations

from celery import shared_task

from runs.worker.worker import WorkerProcess


@shared_task(name="runs.work")
def work(run_id: str = "", **ignored: object) -> None:
    """Let the worker look for the runs that wait, whichever run the message names. Returns at once.

    `ignored` takes arguments that later versions may send.
    """
    worker = WorkerProcess.of_this_process
    if worker is not None:
        worker.receive_wakeup(run_id)
