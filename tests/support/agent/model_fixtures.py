"""Fixtures: a scripted model's server, and a gateway to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.agent.model_server import ModelServer, model_server


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """Yield a model server that answers with the turns of the test's script."""
    with model_server() as server:
        yield server
