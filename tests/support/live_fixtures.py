"""A model whose form a person signs in to; a test module names this one in `pytest_plugins`, with
those of models and pages.
"""

from __future__ import annotations

import pytest

from tests.support.live_pages import FORM, INSIDE, Signing
from tests.support.model_server import ModelServer
from tests.support.pages import PageServer


@pytest.fixture
def model_that_signs_in(model: ModelServer, page_server: PageServer) -> Signing:
    """The scripted model, and the pages that it works on."""
    page_server.add("/inside", INSIDE)
    page_server.add("/other", "<!doctype html><title>Other</title><h1>Other</h1>")
    signing = Signing(page_server.add("/form", FORM))
    model.answer = signing
    return signing
