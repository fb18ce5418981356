"""Read a 16 MiB text artifact over REST in chunks of 256 KiB, against the floor of a bare Django
view that returns the same bytes unchanged (floor_chunks.py): MB/s, one persistent connection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import httpx
import orjson

from tests.benchmarks.event_stream import environment, start_server
from tests.benchmarks.rounds import alternate, ratio, report, spread
from tests.services import DurablePostgresServer, free_port, redis_server, served
from tests.support.runs.waiting import wait_until

ROOT = Path(__file__).parent.parent.parent
SIZE, CHUNK = 16 * 1024 * 1024, 256 * 1024
GOAL = 0.65


def make_text() -> bytes:
    """Return the content: JSON like a run's result, so that its quotes are escaped once more."""
    row = {"url": "https://example.test/a/page", "title": "A page — 页面", "text": "words " * 40}
    line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
    return (line * (SIZE // len(line) + 1))[:SIZE].decode(errors="ignore").encode()


def store_text(data: bytes) -> tuple[str, str]:
    """Store the bytes as an artifact; return its id and a token to read it with."""
    import django  # import late: the environment has to be set first

    django.setup()
    from artifacts.models import Artifact
    from artifacts.services import artifact_rows, store_blob
    from decisions.authorization.authorize import tool_call_request
    from decisions.foundation.infra.ids import new_id
    from decisions.identity.principals import create_token, local_principal

    principal = local_principal()
    blob = store_blob(data, name="result.json", mime_type="application/json")
    owner = tool_call_request(principal.with_trust("remote"), "bench", {})
    rows = artifact_rows([(blob, None)], owner=owner, run_id=new_id("run_"))
    Artifact.objects.bulk_create(rows)
    return blob.artifact_id, create_token(name="bench", trust="local")


def is_listening(client: httpx.Client) -> bool:
    """Return whether a server listens."""
    try:
        client.get("/healthz")
    except httpx.TransportError:
        return False
    return True


def rate(client: httpx.Client, path: str, size: int, *, is_json: bool) -> float:
    """Return the MB/s of one complete read."""
    started, at = time.perf_counter(), 0
    while at < size:
        answer = client.get(path, params={"offset": at, "limit": CHUNK})
        if is_json:
            chunk = orjson.loads(answer.content)
            at += len(chunk["data"].encode())
        else:
            at += len(answer.content)
    assert at == size
    return size / 1e6 / (time.perf_counter() - started)


def main() -> None:
    """Measure and report."""
    with (
        tempfile.TemporaryDirectory() as home,
        served(DurablePostgresServer, DurablePostgresServer.make) as postgres,
        redis_server() as redis,
    ):
        file, data = Path(home) / "floor.json", make_text()
        file.write_bytes(data)
        env = {**environment(postgres.url, redis.url, home), "FLOOR_FILE": str(file)}
        os.environ.update(env, DJANGO_SETTINGS_MODULE="config.settings")
        migrate = [sys.executable, "manage.py", "migrate", "-v0", "--skip-checks"]
        subprocess.run(migrate, env=env, cwd=ROOT, check=True)
        artifact_id, token = store_text(data)
        bearer = {"Authorization": f"Bearer {token}"}
        ports = free_port(), free_port()
        with (
            start_server("manage.py", "serve", "--port", str(ports[0]), env=env),
            start_server("-m", "tests.benchmarks.floor_chunks", str(ports[1]), env=env),
            httpx.Client(base_url=f"http://127.0.0.1:{ports[0]}", headers=bearer) as ours,
            httpx.Client(base_url=f"http://127.0.0.1:{ports[1]}") as floor,
        ):
            for client in (ours, floor):
                wait_until(partial(is_listening, client))
            variants = {
                "ours": partial(
                    rate, ours, f"/api/v1/artifacts/{artifact_id}", len(data), is_json=True
                ),
                "floor": partial(rate, floor, "/chunk", len(data), is_json=False),
            }
            rates = alternate(variants)
    report(
        "artifact_chunks",
        unit="MB/s",
        chunk_bytes=CHUNK,
        **{name: spread(values) for name, values in rates.items()},
        ratio=ratio(rates["ours"], rates["floor"]),
        goal=f">= {GOAL}",
    )


if __name__ == "__main__":
    main()
