"""What callers do during the soak: the scenarios of the upgrade trial, all templates that open
pages, and a runner's tools. Callers meet errors and repeat what has an idempotency key.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from tests.support.browser.page_server import PageServer
from tests.support.browser.template_sites import Site, by_selector, by_text
from tests.trials.soak.stack import Stack
from tests.trials.upgrade_trial.load import TERMINAL, Load, UnexpectedAnswer, may_be_repeated

GIVE_UP_S = 240.0  # for a request that may be repeated
END_S = 420.0  # for a run
TARGET = "target_soak"


class Interrupted(Exception):
    """A fault met a request that must not be repeated; the caller cannot know its effect."""


class EndedOtherwise(Exception):
    """A run ended, but not with success: its worker was lost too often, or at the wrong moment."""


class Callers(Load):
    """Scenarios that run in threads, paused during the quiet.

    Attributes:
        ends: how many accepted runs ended how, with the error's code.
        interrupted: how many rounds met a fault in a request that must not be repeated.
    """

    def __init__(self, stack: Stack, *, token: str, confirmer: str, site: str, pages: PageServer):
        self._stack = stack
        self._pages = Site(pages).open()
        self.ends: Counter[str] = Counter()
        self.interrupted: Counter[str] = Counter()
        self._running = threading.Event()
        self._running.set()
        self._busy = 0
        self._busy_changed = threading.Condition()
        super().__init__(
            stack,  # type: ignore[arg-type]  # of a fleet, only requests need something
            token=token,
            confirmer=confirmer,
            files=stack.home / "files",
            site=site,
            answer_by_command=self._answer_again,
        )

    def start_all(self) -> None:
        """Repeat every scenario."""
        for scenario, pause_s in (
            (self.run_steps, 0.5),
            (self.run_shared, 3.0),
            (self.run_sync, 2.0),
            (self.log_in_and_return, 5.0),
            (self.talk_to_agent, 3.0),
            (self.chat, 2.0),
            (self.stream_events, 3.0),
            (self.call_twice, 2.0),
            (self.use_mcp, 2.0),
            (self.write_with_confirmation, 3.0),
            (self.read_pages, 3.0),
            (self.read_lists, 3.0),
            (self.send_form, 3.0),
            (self.replay, 3.0),
            (self.call_runner, 2.0),
        ):
            self.repeat(scenario, pause_s=pause_s)

    def begin(self, phase: str) -> None:
        """Name the phase; a fault may keep a scenario from having a round in it."""
        self._phase = phase

    # --- pauses ---------------------------------------------------------------------------------

    def pause(self, within_s: float) -> bool:
        """Begin no further round; wait for those that run, and return whether all ended in time."""
        self._running.clear()
        deadline = time.monotonic() + within_s
        with self._busy_changed:
            while self._busy and time.monotonic() < deadline:
                self._busy_changed.wait(0.5)
            return not self._busy

    def go_on(self) -> None:
        """Let the scenarios be repeated again."""
        self._running.set()

    def _repeat(self, scenario: Any, pause_s: float) -> None:
        name = scenario.__name__
        while not self._stopping.is_set():
            if not self._running.wait(0.5):
                continue
            self._count_busy(+1)
            try:
                scenario()
            except (Interrupted, httpx.HTTPError):
                self.interrupted[name] += 1
            except EndedOtherwise:
                self.rounds[self._phase, name] += 1
            except Exception as error:  # noqa: BLE001 - whatever a caller meets is a fault
                self.faults.append(f"[{self._phase}] {name}: {error!r}")
                print("  fault", self.faults[-1][:600], flush=True)
            else:
                self.rounds[self._phase, name] += 1
            self._count_busy(-1)
            self._stopping.wait(pause_s)

    def _count_busy(self, by: int) -> None:
        with self._busy_changed:
            self._busy += by
            self._busy_changed.notify_all()

    # --- requests -------------------------------------------------------------------------------

    def call(self, path: str, body: Any = None, *, who: str = "caller", ok: int = 299) -> Any:
        """Call the API. A request that may be repeated is, until it is answered.

        Raises:
            Interrupted: The answer to another request was lost, or refused for the moment.
            UnexpectedAnswer: The request was refused for good, or never answered.
        """
        headers = {"Authorization": f"Bearer {self._tokens[who]}"}
        method = "GET" if body is None else "POST"
        deadline = time.monotonic() + GIVE_UP_S
        while True:
            try:
                url = f"{self._stack.web().address}/api/v1/{path}"
                answer = self._client.request(method, url, json=body, headers=headers, timeout=75)
                if answer.status_code <= ok:
                    return answer.json()
                said = f"{answer.status_code}: {answer.text[:600]}"
                if '"effect":"unknown"' in said:  # its process was killed: nobody can know
                    raise Interrupted(said)
                goes_on = answer.status_code == 409 and "still running" in said
                if answer.status_code < 500 and answer.status_code != 429 and not goes_on:
                    raise UnexpectedAnswer(f"{path} {said}")
            except httpx.HTTPError as error:
                said = repr(error)
            if not may_be_repeated(body):
                raise Interrupted(said)
            if time.monotonic() > deadline:
                raise UnexpectedAnswer(f"{path} was not answered for {GIVE_UP_S:.0f} s: {said}")
            time.sleep(random.uniform(0.3, 1.0))

    def mcp(self, method: str, params: Any, session: str = "") -> tuple[Any, str]:
        """Make an MCP request, once.

        Raises:
            Interrupted: It was refused for the moment.
        """
        try:
            result, session = super().mcp(method, params, session)
            if result.get("isError"):
                raise Interrupted(str(result)[:600])
            return result, session
        except UnexpectedAnswer as answer:
            if re.search(r" (5\d\d|429): ", str(answer)):
                raise Interrupted(str(answer)) from answer
            raise

    def wait(self, run_id: str, *, stops_at_question: bool = False) -> Any:
        """Wait until a run has ended, or waits for a person."""
        deadline = time.monotonic() + END_S
        while time.monotonic() < deadline:
            run = self.call(f"runs/{run_id}/wait?waitMs=5000")
            if run["status"] in TERMINAL or (stops_at_question and run.get("waitingFor")):
                return run
            time.sleep(0.1 if not run.get("waitingFor") else 0.5)
        raise UnexpectedAnswer(f"{run_id} has not ended within {END_S:.0f} s: {str(run)[:500]}")

    def succeed(self, run_id: str) -> Any:
        """Wait for the end of a run and return it.

        Raises:
            EndedOtherwise: It did not succeed.
        """
        run = self.wait(run_id)
        error = run.get("error") or {}
        cause = (error.get("details") or {}).get("causeCode") or error.get("errorCode", "")
        self.ends[f"{run['status']} {cause}".strip()] += 1
        if run["status"] != "succeeded":
            self.check_effects()
            raise EndedOtherwise(f"{run_id} {run['status']}")
        return run

    def check_effects(self) -> None:
        """Check that no file of a `once` step has more than one line."""
        for file in self.files.glob("once-*"):
            if file.read_text().count("x\n") > 1:
                raise UnexpectedAnswer(f"doubled: {file.name} has {file.read_text()!r}")

    def _answer_again(self, decision: int) -> None:
        raise Interrupted(f"the request {decision} was answered or has changed")

    # --- further scenarios ----------------------------------------------------------------------

    def read_pages(self) -> None:
        """A batch of pages, and a comparison of two."""
        urls = [self._pages.url(f"/list?p={n}") for n in range(1, 5)]
        run_id = self.submit("batch_extract_pages", {"urls": [*urls, self._pages.url("/article")]})
        if len(self.succeed(run_id)["result"]["items"]) != 5:
            raise UnexpectedAnswer(f"{run_id} has not read five pages")
        self.succeed(self.submit("multi_tab_compare", {"urls": urls[:2]}))

    def read_lists(self) -> None:
        """A list of four pages, and a search."""
        pagination = {"next": by_text("next page"), "maxPages": 5}
        listing = {"startUrl": self._pages.url("/list"), "pagination": pagination}
        self.succeed(self.submit("paginated_extract", listing))
        search = {"startUrl": self._pages.url("/search"), "query": "queues"}
        self.succeed(self.submit("search_extract", {**search, "searchField": by_text("search")}))

    def send_form(self) -> None:
        """A form, which is sent at most once."""
        name = f"caller-{next(self._number)}"
        field = {"name": "name", "value": name, "locator": by_selector("#name")}
        form = {"startUrl": self._pages.url("/contact"), "fields": [field]}
        try:
            self.succeed(self.submit("submit_and_verify", form))
        finally:
            sent = sum(sent.get("name") == name for _, sent in self._pages.server.forms)
            if sent > 1:
                raise UnexpectedAnswer(f"doubled: the form of {name} was sent {sent} times")

    def replay(self) -> None:
        """A success path, replayed."""
        path = {
            "name": "read an article",
            "intent": "know what the article says",
            "idempotency_key": f"path-{next(self._number)}",
            "procedure": [{"tool": "read_page", "args": {"url": "${url}"}}],
            "required_slots": ["url"],
            "slot_definitions": {"url": "the page"},
            "success_criteria": "the article is read",
            "confidence": "medium",
            "validity": "long",
            "tags": [],
        }
        stored = self.call("user/alice/objects/success-path", path)
        inputs = {
            "objectId": (stored.get("item") or stored)["object_id"],
            "slots": {"url": self._pages.url("/article")},
        }
        self.succeed(self.submit("replay_success_path", inputs))

    def call_runner(self) -> None:
        """A run whose step a runner executes, and which may find it gone."""
        call = {"name": "bash.exec", "args": {"cmd": "sleep 0.5; echo done"}, "targetId": TARGET}
        self.succeed(self.submit("call_tools", {"calls": [call]}))


def new_folders(home: Path) -> None:
    """Create the folders that the scenarios and processes use."""
    for name in ("home", "files", "template", "runner", "tmp"):
        (home / name).mkdir(exist_ok=True)
