"""The floor of a durable run: Celery and three ORM writes (insert, running, succeeded), nothing
else.

`python -m tests.benchmarks.floor_queue prepare|throughput N|latency N` drives it;
`celery -A tests.benchmarks.floor_queue worker` starts the worker. FLOOR_STOCK=1 keeps Celery's own
handling of connections.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import Any, ClassVar
from urllib.parse import urlsplit

import django
import redis
from celery import Celery
from celery.fixups.django import DjangoWorkerFixup  # type: ignore[attr-defined]
from django.conf import settings

_database = urlsplit(os.environ["DATABASE_URL"])
if not settings.configured:
    settings.configure(
        SECRET_KEY="floor",
        INSTALLED_APPS=[],
        USE_TZ=True,
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "HOST": _database.hostname,
                "PORT": _database.port,
                "USER": _database.username,
                "NAME": _database.path.strip("/"),
                "CONN_MAX_AGE": 600,
            }
        },
    )
    # Celery's Django fixup looks for this name and uses the app that it finds.
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.benchmarks.floor_queue"
    django.setup()

from django.db import connection, models  # noqa: E402


class Work(models.Model):
    """A run with the fewest columns."""

    id = models.CharField(primary_key=True, max_length=64)
    status = models.CharField(max_length=16)
    inputs = models.JSONField()
    result = models.JSONField(null=True)

    objects: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        app_label = "floor"

    def __str__(self) -> str:
        return self.id


def _keep_connections(self: DjangoWorkerFixup, **kwargs: Any) -> None:
    for opened in self._db.connections.all(initialized_only=True):
        opened.close_if_unusable_or_obsolete()


if os.environ.get("FLOOR_STOCK") != "1":
    DjangoWorkerFixup.close_database = _keep_connections

app = Celery("floor", broker=os.environ["REDIS_URL"])
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    task_default_queue=f"floor{os.environ.get('FLOOR_STOCK', '')}",
    broker_connection_retry_on_startup=True,
)
redis_client = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)


@app.task(name="floor.work")
def work(work_id: str) -> None:
    """Record the start and the end of a task that does nothing."""
    Work.objects.filter(id=work_id, status="queued").update(status="running")
    Work.objects.filter(id=work_id, status="running").update(
        status="succeeded", result={"ok": True}
    )
    redis_client.lpush(f"done:{work_id}", 1)
    redis_client.incr("done")


def submit(work_id: str) -> None:
    """Insert a row and send its task."""
    Work.objects.create(id=work_id, status="queued", inputs={"a": 1})
    work.delay(work_id)


def latency_ms(count: int) -> float:
    """Return the median from submit to done, one at a time."""
    durations = []
    for number in range(count):
        work_id, start = f"l{time.time_ns()}-{number}", time.perf_counter()
        submit(work_id)
        if redis_client.blpop([f"done:{work_id}"], timeout=20) is None:
            raise TimeoutError(work_id)
        durations.append((time.perf_counter() - start) * 1000)
    return statistics.median(durations)


def throughput(count: int) -> float:
    """Return runs per second from the first submit to the last end."""
    redis_client.set("done", 0)
    start = time.perf_counter()
    for number in range(count):
        submit(f"t{time.time_ns()}-{number}")
    while int(redis_client.get("done") or 0) < count:
        time.sleep(0.005)
    return count / (time.perf_counter() - start)


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        with connection.schema_editor() as editor:
            editor.create_model(Work)
    else:
        measure = {"throughput": throughput, "latency": latency_ms}[sys.argv[1]]
        print(measure(int(sys.argv[2])))
