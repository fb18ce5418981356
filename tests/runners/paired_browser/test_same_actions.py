"""The tests of the worker's browser, with the actions of a Chromium that has the extension."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import pytest

from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import start_on_markup
from tests.support.extension import extension_reader
from tests.support.extension.extension_fixtures import ExtensionTask
from tests.support.extension.extension_reader import ExtensionReader

pytestmark = pytest.mark.slow
MODULES = ("click", "type", "gestures", "drag", "page_text", "scroll", "upload", "unusual_elements")
NOT_THE_SAME = {
    "a_secret_is_in_no_warning": "the server masks the run's secrets, not the browser",
}
# What a test of the worker's browser replaces, by what it replaces here.
REPLACED = {
    "detach": extension_reader.detach_debugger,
    "close_session_after": extension_reader.lose_debugger_after,
    "invoke": extension_reader.invoke_by_extension,
}
SOURCES = {
    name: importlib.import_module(f"tests.runners.browser.actions.test_{name}") for name in MODULES
}


def _tests() -> Iterator[tuple[str, FunctionType]]:
    for module, source in SOURCES.items():
        for name, function in vars(source).items():
            is_test = name.startswith("test_") and isinstance(function, FunctionType)
            if is_test and name.removeprefix("test_") not in NOT_THE_SAME:
                yield f"test_{module}_{name.removeprefix('test_')}", function


globals().update(_tests())


@pytest.fixture
def reader(extension_task: ExtensionTask) -> ExtensionReader:
    """Return a reader that performs actions in the browser with the extension."""
    return ExtensionReader(extension_task)


@pytest.fixture
def shared_reader(reader: ExtensionReader) -> ExtensionReader:
    """Return the reader of the test."""
    return reader


@pytest.fixture
def shared_page_server(page_server: PageServer) -> PageServer:
    """Return the web server of the test."""
    return page_server


@pytest.fixture
def start(reader: Any, page_server: PageServer) -> Any:
    """Return a function that starts a task on markup."""
    return lambda markup: start_on_markup(reader, page_server, markup)


@pytest.fixture(autouse=True)
def replaced_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests lose the extension's debugger where they lose the worker's session."""
    for source in SOURCES.values():
        for name, replacement in REPLACED.items():
            if hasattr(source, name):
                monkeypatch.setattr(source, name, replacement)
