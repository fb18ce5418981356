"""Fixture: a model that opens a form which a person signs in to."""

from __future__ import annotations

import pytest

from tests.support.admin.live_pages import FORM, SIGNED_IN, SignInModel
from tests.support.agent.model_server import ModelServer
from tests.support.browser.page_server import PageServer


@pytest.fixture
def model_that_signs_in(model: ModelServer, page_server: PageServer) -> SignInModel:
    """Configure the scripted model and serve the pages that it works on."""
    page_server.add("/inside", SIGNED_IN)
    page_server.add("/other", "<!doctype html><title>Other</title><h1>Other</h1>")
    signing = SignInModel(page_server.add("/form", FORM))
    model.answer = signing
    return signing
