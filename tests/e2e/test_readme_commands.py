"""Run the shell blocks of README as written, except for the address, the interpreter, the page that
is read, and the ids that a reader copies from an answer.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.docs.samples import samples
from tests.e2e.test_documented_runner_commands import run, values
from tests.support.browser.page_server import PageServer
from tests.support.installation.temporary_home import temporary_home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
pytest_plugins = ["tests.support.browser.browser_fixtures"]


@dataclass(frozen=True, slots=True)
class Reader:
    """Someone who follows README: the environment with the token, and the stack's address."""

    env: dict[str, str]
    address: str

    def block(self, word: str, **replaced: str) -> str:
        """Return README's block with this word, with the values of this test."""
        (found,) = [one.text for one in samples("sh", "README.md") if word in one.text]
        given = {".venv/bin/python": shlex.quote(sys.executable)}
        given["http://127.0.0.1:8000"] = self.address
        for documented, value in {**given, **replaced}.items():
            found = found.replace(documented, value)
        return found


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with temporary_home(tmp_path_factory.mktemp("readme") / "home") as home:
        address = home.start("up").wait_until_ready()
        token = home.run("create_token", "me", "--trust", "local").stdout.strip()
        yield Reader({**home.env, "TOKEN": token}, address)


def test_a_run_is_submitted_followed_and_exported(reader: Reader, page_server: PageServer) -> None:
    url = page_server.add("/", "<title>Example</title><p>Example")
    text = reader.block("batch_extract_pages", **{"https://example.com/": url})
    submit, _, follow = text.partition("RUN_ID=run_…")
    submit = submit.partition("\n")[2]  # the token exists
    (submitted,) = values(run(submit, reader.env))
    of_run = {**reader.env, "RUN_ID": submitted["runId"]}
    waited, _, streamed = run(follow.partition("\n")[2], of_run).partition("retry: ")
    assert json.loads(waited.strip())["status"] == "succeeded"
    assert '"type":"run.succeeded"' in streamed
    assert submitted["runId"] in run(reader.block("verify_audit"), of_run)


def test_a_message_is_judged(reader: Reader) -> None:
    (judged,) = values(run(reader.block("api/v1/chat"), reader.env))
    assert judged["trace"]["mode"] == "confirm"


def test_the_entry_of_an_agent_host_names_the_command(reader: Reader) -> None:
    assert "mcp_stdio" in run(reader.block("mcp_config"), reader.env)
