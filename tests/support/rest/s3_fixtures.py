"""Fixtures: a server with the S3 API in this process. A test module names this one in
`pytest_plugins`.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import override_settings
from moto.server import ThreadedMotoServer

from config.home import artifact_storage
from decisions.infra.ids import new_id
from tests.support.rest.s3_bucket import SECRET, Bucket


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """Yield the address of the server."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """Store artifacts in a new bucket for the length of a test."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "canary-key-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    bucket = Bucket(s3_endpoint, new_id("bucket-").replace("_", "-"))
    storages = copy.deepcopy(settings.STORAGES)
    storages["artifacts"] = artifact_storage(bucket.url, settings.CONTINUITY_HOME)
    with override_settings(STORAGES=storages, CONTINUITY_ARTIFACT_STORAGE=bucket.url):
        client = bucket.storage.connection.meta.client
        client.create_bucket(Bucket=bucket.name)
        client.meta.events.register(
            "provide-client-params.s3",
            lambda params, model, **_: bucket.calls.append((model.name, dict(params))),
        )
        yield bucket
