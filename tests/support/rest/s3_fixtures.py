"""Fixtures: a server with the S3 API in this process."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import override_settings
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from config.home import artifact_storage
from decisions.foundation.infra.ids import new_id
from tests.support.rest.s3_bucket import KEY_ID, SECRET, Bucket
from tests.support.rest.s3_signatures import SignatureCheck


@pytest.fixture(scope="session")
def s3_server() -> Iterator[tuple[str, SignatureCheck]]:
    """Yield the address of the server, and what verifies the signatures of its requests."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    check = SignatureCheck(DomainDispatcherApplication(create_backend_app), {KEY_ID: SECRET})
    server = make_server("127.0.0.1", 0, check, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", check
    server.shutdown()
    thread.join()


@pytest.fixture
def bucket(
    s3_server: tuple[str, SignatureCheck], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bucket]:
    """Store artifacts in a new bucket for the length of a test."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    bucket = Bucket(s3_server[0], new_id("bucket-").replace("_", "-"))
    storages = copy.deepcopy(settings.STORAGES)
    storages["artifacts"] = artifact_storage(bucket.url, settings.CONTINUITY_HOME)
    with override_settings(STORAGES=storages, CONTINUITY_ARTIFACT_STORAGE=bucket.url):
        client = bucket.storage.client
        client.create_bucket(Bucket=bucket.name)
        client.meta.events.register(
            "provide-client-params.s3",
            lambda params, model, **_: bucket.calls.append((model.name, dict(params))),
        )
        yield bucket
