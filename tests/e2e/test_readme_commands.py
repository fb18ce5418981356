"""Run the shell blocks of README, and those with which pages of docs begin, as written, except for
the address, the interpreter, the page that is read, and the ids that a reader copies.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.docs.samples import samples
from tests.e2e.test_documented_runner_commands import run, runner, values
from tests.support.agent.model_server import model_server
from tests.support.agent.model_turns import complete
from tests.support.browser.page_server import PageServer
from tests.support.installation.temporary_home import temporary_home
from tests.support.runs.waiting import wait_until

__all__ = ["runner"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
MODEL = {"CONTINUITY_LLM_MODEL": "scripted", "CONTINUITY_LLM_API_KEY": "sk-test"}


@dataclass(frozen=True, slots=True)
class Reader:
    """Someone who follows a page: the environment with the token, and the stack's address."""

    env: dict[str, str]
    address: str

    def block(self, word: str, page: str = "README.md", **replaced: str) -> str:
        """Return a page's first block with this word, with the values of this test."""
        found = next(one.text for one in samples("sh", page) if word in one.text)
        given = {".venv/bin/python": shlex.quote(sys.executable)}
        given["http://127.0.0.1:8000"] = self.address
        for documented, value in {**given, **replaced}.items():
            found = found.replace(documented, value)
        return found

    def run(self, word: str, page: str = "README.md", **replaced: str) -> list[Any]:
        """Run a page's block and return the JSON values that it prints."""
        return values(run(self.block(word, page, **replaced), self.env))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Start a stack with a model and a project in developer mode."""
    project = tmp_path_factory.mktemp("project")
    (project / "start.txt").write_text("Mia:Good morning.;\n")
    (project / "package.json").write_text('{"scripts": {"build": "echo built"}}')
    env = {"CONTINUITY_WORKSPACE": str(project), "CONTINUITY_DEVELOPER": "1", **MODEL}
    home = tmp_path_factory.mktemp("readme") / "home"
    with model_server() as model, temporary_home(home, **env) as opened:
        model.answer = lambda _: complete("From 10 to 18.")
        address = opened.start("up", CONTINUITY_LLM_BASE_URL=model.url).wait_until_ready()
        token = opened.run("create_token", "me", "--trust", "local").stdout.strip()
        yield Reader({**opened.env, "TOKEN": token}, address)


@pytest.fixture
def page(page_server: PageServer) -> dict[str, str]:
    """Serve a page for the address that docs read."""
    return {"https://example.com/": page_server.add("/", "<title>Example</title><p>Example")}


def test_a_run_is_submitted_followed_and_exported(reader: Reader, page: dict[str, str]) -> None:
    submit, _, follow = reader.block("batch_extract_pages", **page).partition("RUN_ID=run_…")
    (submitted,) = values(run(submit.partition("\n")[2], reader.env))  # the token exists
    of_run = {**reader.env, "RUN_ID": submitted["runId"]}
    waited, _, streamed = run(follow.partition("\n")[2], of_run).partition("retry: ")
    assert json.loads(waited.strip())["status"] == "succeeded"
    assert '"type":"run.succeeded"' in streamed
    assert submitted["runId"] in run(reader.block("verify_audit"), of_run)


def test_an_agent_reaches_the_goal_of_a_message(reader: Reader) -> None:
    create, _, follow = reader.block("api/v1/tasks").partition("TASK=task_…")
    (created,) = values(run(create, reader.env))
    of_task = {**reader.env, "TASK": created["taskId"]}
    read = follow.partition("\n")[2]
    wait_until(lambda: values(run(read, of_task))[0]["status"] == "completed")
    assert values(run(read, of_task))[0]["messages"][-1]["content"] == "From 10 to 18."


def test_the_entry_of_an_agent_host_names_the_command(reader: Reader) -> None:
    assert "mcp_stdio" in run(reader.block("mcp_config"), reader.env)


def test_a_message_is_judged(reader: Reader) -> None:
    (judged,) = reader.run("success_criteria", "docs/continuity.md")
    (of_contract,) = reader.run("success_criteria", "docs/contracts.md")
    assert judged["trace"]["mode"] == of_contract["trace"]["mode"] == "confirm"


def test_a_call_is_made_once_a_person_confirmed_it(reader: Reader, runner: str) -> None:
    python = shlex.quote(sys.executable)
    add = f"{python} manage.py add_target --id target_builder --endpoint http://{runner}/execute"
    run(add, reader.env)
    (asked,) = reader.run("bash.exec", "docs/confirmations.md")
    number = str(asked["details"]["decisionId"])
    shown = run(
        reader.block("confirm 1", "docs/confirmations.md", **{" 1": f" {number}"}), reader.env
    )
    assert (asked["errorCode"], "rm -rf build" in shown) == ("CONFIRMATION_REQUIRED", True)
    (confirm,) = re.findall(r"^Confirm: (.+)", shown, re.M)
    run(confirm.replace("manage.py", f"{python} manage.py"), reader.env)
    (made,) = reader.run("bash.exec", "docs/confirmations.md")
    assert (made["ok"], made["output"]["exitCode"]) == (True, 0)


def test_a_remote_token_reaches_no_private_address(reader: Reader) -> None:
    (ended,) = reader.run("create_token web", "docs/trust.md")
    assert ended["error"]["errorCode"] == "TRUST_LEVEL_NOT_ALLOWED"


def test_the_audit_log_is_read_and_verified(reader: Reader) -> None:
    printed = run(reader.block("verify_audit", "docs/audit.md"), reader.env)
    assert '"action"' in printed
    assert "The audit log is intact" in printed


def test_a_file_is_uploaded(reader: Reader, tmp_path: Path) -> None:
    text = reader.block("notes.txt", "docs/artifacts.md", **{"notes.txt": str(tmp_path / "notes")})
    announce, _, complete_it = text.partition("URL=http")
    (upload,) = values(run(announce.replace(f'"{tmp_path}/notes"', '"notes.txt"'), reader.env))
    of_upload = {**reader.env, "URL": upload["url"], "UPLOAD": upload["uploadId"]}
    *_, artifact = values(run(complete_it.partition("\n")[2], of_upload))
    assert (artifact["name"], artifact["sizeBytes"]) == ("notes.txt", 6)


def test_a_run_uses_a_named_session(reader: Reader, page: dict[str, str]) -> None:
    create, _, use = reader.block("sessions", "docs/sessions.md", **page).partition("SESSION=")
    (session,) = values(run(create, reader.env))
    of_session = {**reader.env, "SESSION": session["sessionId"]}
    (used,) = values(run(use.partition("\n")[2], of_session))
    assert (used["status"], used["sessionId"]) == ("succeeded", session["sessionId"])


def test_the_files_and_scripts_of_a_project_are_used(reader: Reader) -> None:
    found, refused = reader.run("search_files", "docs/workspace.md")
    assert found["output"]["matches"][0]["preview"] == "Mia:Good morning.;"
    assert refused["error"]["code"] == "E_DENY_PATH"
    built, _ = reader.run("execute_command", "docs/developer-tools.md")
    assert (built["output"]["ok"], "built" in built["output"]["logs"]) == (True, True)


def test_a_task_in_the_paired_browser_needs_a_paired_one(reader: Reader) -> None:
    (refused,) = reader.run("plugin", "docs/paired-browser.md")
    assert refused["errorCode"] == "PLUGIN_OFFLINE"
    assert "plt_" in run(
        reader.block("plugin_ticket", "docs/extension.md").partition("\n")[2], reader.env
    )
