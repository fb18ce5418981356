"""What callers do during the trial: runs, logins, confirmations, questions, chats, streams."""

from __future__ import annotations

import itertools
import json
import random
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.support.agent.model_server import ModelRequest
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.login_site import PASSWORD, USERNAME
from tests.trials.upgrade_trial.fleet import Fleet

END_S = 120.0  # within which a run has to end
TERMINAL = ("succeeded", "partial_success", "failed", "canceled", "expired")
SELECTORS = {"mode": "selector", "usernameSelector": "#u", "passwordSelector": "#p"}
WELCOME = {"type": "textIncludes", "value": "Log out", "timeoutMs": 5000}


class UnexpectedAnswer(Exception):
    """An answer or an effect that a caller did not expect."""


class Load:
    """Scenarios that run in threads until they are stopped.

    Every request goes to one of the web processes that serve at that time, so the steps of a
    scenario meet both versions.

    Attributes:
        faults: the rounds that failed; after `stop` also the scenarios that had no round in a
            phase that lasted at least two of their usual rounds, and those that did not end.
        rounds: how many rounds were successful, by phase and scenario.
    """

    def __init__(
        self,
        fleet: Fleet,
        *,
        token: str,
        confirmer: str,
        files: Path,
        site: str,
        answer_by_command: Callable[[int], object],
    ) -> None:
        self.fleet, self.files, self.site = fleet, files, site
        self.answer_by_command = answer_by_command
        self.faults: list[str] = []
        self.rounds: Counter[tuple[str, str]] = Counter()
        self.confirmations: Counter[tuple[str, int]] = Counter()  # by phase and how many a run had
        self.accepted: set[str] = set()
        self.delays: dict[str, list[float]] = {}
        self._tokens = {"caller": token, "confirmer": confirmer}
        self._number = itertools.count()
        self._stopping = threading.Event()
        # The servers close connections that are idle for 5 s, which must not meet a request.
        self._client = httpx.Client(timeout=70, limits=httpx.Limits(keepalive_expiry=2.0))
        self._threads: list[threading.Thread] = []
        self._phase = "start"
        self._began_at: dict[str, float] = {}  # of each phase
        self._lasted_s: defaultdict[str, list[float]] = defaultdict(list)  # rounds, with pauses
        self._missing: set[tuple[str, str]] = set()  # phases and scenarios without a round yet

    def start(self) -> None:
        """Repeat all scenarios but those that need a policy rule."""
        self.repeat(self.run_steps, threads=3, pause_s=0.2)
        self.repeat(self.run_shared, pause_s=1.0)
        self.repeat(self.run_sync, pause_s=0.5)
        self.repeat(self.log_in_and_return, pause_s=2.0)
        self.repeat(self.talk_to_agent, pause_s=1.0)
        self.repeat(self.chat, pause_s=1.0)
        self.repeat(self.stream_events, pause_s=1.0)
        self.repeat(self.call_twice, pause_s=0.5)
        self.repeat(self.use_mcp, pause_s=0.5)

    def start_confirmations(self) -> None:
        """Repeat the scenario of a call that a policy rule has confirmed, from now on."""
        self.repeat(self.write_with_confirmation, threads=2, pause_s=1.0)

    def repeat(
        self, scenario: Callable[[], None], *, threads: int = 1, pause_s: float = 0.0
    ) -> None:
        """Repeat a scenario in threads, until `stop`."""
        for _ in range(threads):
            thread = threading.Thread(
                target=self._repeat, args=(scenario, pause_s), name=scenario.__name__, daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def begin(self, phase: str) -> None:
        """Begin a phase, in which each scenario that was started has to have a round, unless the
        phase is too short for it.
        """
        self._phase = phase
        self._began_at[phase] = time.monotonic()
        self._missing |= {(phase, thread.name) for thread in self._threads}

    def stop(self, *, within_s: float = END_S * 3) -> None:
        """Let every scenario come to its end; add what is missing to the faults."""
        self._stopping.set()
        stopped_at = time.monotonic()
        deadline = stopped_at + within_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                self.faults.append(f"{thread.name} has not ended within {within_s:.0f} s")
        began = [*self._began_at.items(), ("stopped", stopped_at)]
        for (phase, began_at), (_, ended_at) in itertools.pairwise(began):
            for name in sorted(name for one, name in self._missing if one == phase):
                if ended_at - began_at >= self._needed_s(name):
                    self.faults.append(f"[{phase}] no round of {name}")

    def _needed_s(self, name: str) -> float:
        """Return how long a phase must last so that a scenario has time for a round: two of its
        usual ones, because one may have begun before. 0 if none was ever successful.
        """
        lasted = self._lasted_s[name]
        return 2 * statistics.median(lasted) if lasted else 0.0

    def _repeat(self, scenario: Callable[[], None], pause_s: float) -> None:
        name = scenario.__name__
        while not self._stopping.is_set():
            phase, began_at = self._phase, time.monotonic()
            try:
                scenario()
            except Exception as error:  # noqa: BLE001 - whatever a caller meets is a fault
                text = f"[{phase} → {self._phase}] {name}: {error!r}"
                self.faults.append(text)
                print("  fault", text, flush=True)
            else:
                self.rounds[phase, name] += 1
                self._lasted_s[name].append(time.monotonic() - began_at + pause_s)
                self._missing -= {(phase, name), (self._phase, name)}
            self._stopping.wait(pause_s)

    # --- requests -------------------------------------------------------------------------------

    def call(self, path: str, body: Any = None, *, who: str = "caller", ok: int = 299) -> Any:
        """Call the API of one of the web processes.

        A process that stops resets connections from which it has not read a request. Only then, and
        only a request that may be repeated, is made again, to another process.
        """
        web = self.fleet.web()
        headers = {"Authorization": f"Bearer {self._tokens[who]}"}
        url = f"{web.address}/api/v1/{path}"
        method = "GET" if body is None else "POST"
        try:
            answer = self._client.request(method, url, json=body, headers=headers)
        except (httpx.ConnectError, httpx.ReadError):
            if self.fleet.takes_requests(web) or not may_be_repeated(body):
                raise
            return self.call(path, body, who=who, ok=ok)
        if answer.status_code > ok:
            raise UnexpectedAnswer(f"{web.name} {path} {answer.status_code}: {answer.text[:600]}")
        return answer.json()

    def submit(self, template: str, inputs: Any, **more: Any) -> str:
        """Submit a run, twice with one idempotency key, and return its id."""
        options = {"mode": "async", "idempotencyKey": f"key-{next(self._number)}"}
        body = {"templateId": template, "inputs": inputs, "options": options, **more}
        first, again = (self.call("runs", body)["runId"] for _ in range(2))
        self.accepted.add(first)
        if first != again:
            raise UnexpectedAnswer(f"one key, two runs: {first} and {again}")
        return str(first)

    def wait(self, run_id: str, *, stops_at_question: bool = False) -> Any:
        """Wait until a run has ended, or waits for a person."""
        deadline = time.monotonic() + END_S
        while time.monotonic() < deadline:
            run = self.call(f"runs/{run_id}/wait?waitMs=5000")
            if run["status"] in TERMINAL or (stops_at_question and run.get("waitingFor")):
                return run
            time.sleep(0.05 if not run.get("waitingFor") else 0.5)
        raise UnexpectedAnswer(f"{run_id} has not ended: {json.dumps(run)[:800]}")

    def succeed(self, run_id: str) -> Any:
        """Wait for a run, which has to succeed; return it."""
        run = self.wait(run_id)
        if run["status"] != "succeeded":
            raise UnexpectedAnswer(f"{run_id} {run['status']}: {json.dumps(run)[:900]}")
        return run

    # --- scenarios ------------------------------------------------------------------------------

    def new_file(self) -> Path:
        """Return a file that no other scenario writes."""
        return self.files / f"once-{next(self._number)}"

    def expect_line(self, file: Path) -> None:
        """Check that the effect of a run happened once."""
        if (lines := file.read_text().count("\n")) != 1:
            raise UnexpectedAnswer(f"{file.name}: the effect happened {lines} times")

    def run_steps(self) -> None:
        """A run of some steps, the last of which has an effect."""
        file, steps = self.new_file(), random.choice([1, 5, 40])
        self.succeed(self.submit("upgrade_trial", {"steps": steps, "file": str(file)}))
        self.expect_line(file)

    def run_shared(self) -> None:
        """A run whose steps other workers take too."""
        file = self.new_file()
        inputs = {"steps": 30, "file": str(file), "shared": True}
        self.succeed(self.submit("upgrade_trial", inputs))
        self.expect_line(file)

    def run_sync(self) -> None:
        """A caller that waits for a short run."""
        file = self.new_file()
        body = {
            "templateId": "upgrade_trial",
            "inputs": {"steps": 1, "file": str(file)},
            "options": {"mode": "sync"},
        }
        run = self.call("runs", body)
        self.accepted.add(run["runId"])
        self.succeed(run["runId"])
        self.expect_line(file)

    def log_in_and_return(self) -> None:
        """A login with secret inputs, and another run in its session."""
        login = self.submit(
            "login_keep_session",
            {
                "startUrl": f"{self.site}/login",
                "fields": SELECTORS,
                "successIndicator": WELCOME,
                "credentials": {"username": USERNAME, "password": PASSWORD},
            },
        )
        ended = self.succeed(login)["result"]
        for _ in range(2):
            time.sleep(random.choice([0, 5]))
            read = self.submit(
                "batch_extract_pages", {"urls": [ended["finalUrl"]]}, sessionId=ended["sessionId"]
            )
            title = self.succeed(read)["result"]["items"][0]["title"]
            if title != "Members":
                raise UnexpectedAnswer(f"{read}: the session is not logged in: {title}")

    def write_with_confirmation(self) -> None:
        """A run that writes a file once a person confirmed it."""
        name = f"written-{next(self._number)}.txt"
        args = {"path": name, "content": "x\n", "mode": "append", "dryRun": False}
        run_id = self.submit("call_tools", {"calls": [{"name": "write_to_file", "args": args}]})
        self.confirmations[self._phase, self._confirm_until_ended(run_id)] += 1
        self.succeed(run_id)
        self.expect_line(self.files / name)

    def _confirm_until_ended(self, run_id: str) -> int:
        """Confirm what a run waits for, each time that it asks; return how often it asked.

        It asks again where its request or the answer was of the other version.
        """
        decisions = set[int]()
        deadline = time.monotonic() + END_S
        while time.monotonic() < deadline:
            run = self.wait(run_id, stops_at_question=True)
            if run["status"] in TERMINAL:
                return len(decisions)
            decision = run["waitingFor"]["decisionId"]
            if decision in decisions:
                time.sleep(0.2)
                continue
            decisions.add(decision)
            time.sleep(random.choice([0, 2]))
            try:
                self.call(f"decision/{decision}/confirm", {"user_id": "alice"}, who="confirmer")
            except UnexpectedAnswer as answer:
                if "invalid_or_expired" not in str(answer):
                    raise
                self.answer_by_command(decision)
        raise UnexpectedAnswer(f"{run_id} still asks after {len(decisions)} confirmations")

    def talk_to_agent(self) -> None:
        """A task whose agent reads a file, asks a question and uses the answer."""
        task = self.call("tasks", {"message": "Ask me, then answer."})
        run_id = task["runId"]
        self.accepted.add(run_id)
        run = self.wait(run_id, stops_at_question=True)
        if not run.get("waitingFor"):
            raise UnexpectedAnswer(f"{run_id} did not ask: {json.dumps(run)[:600]}")
        time.sleep(random.choice([0, 3]))
        self.call(f"tasks/{task['taskId']}/messages", {"content": "blue"})
        result = self.succeed(run_id)["result"]
        if "blue" not in json.dumps(result):
            raise UnexpectedAnswer(f"{run_id}: the answer is lost: {result}")

    def call_twice(self) -> None:
        """A direct call that is repeated with its idempotency key, and made once."""
        file = self.new_file()
        file.write_text("a\n")
        args = {"path": file.name, "find": "a", "replace": "a\nb"}
        body = {"args": args, "idempotencyKey": file.name}
        answers = [self.call("tools/replace_in_file/call", body) for _ in range(3)]
        if len({answer["callId"] for answer in answers}) != 1:
            raise UnexpectedAnswer(f"one key, several calls: {answers}")
        if file.read_text() != "a\nb\n":
            raise UnexpectedAnswer(f"{file.name}: the call was made again: {file.read_text()!r}")

    def use_mcp(self) -> None:
        """A session over HTTP that submits a run and reads it."""
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "trial", "version": "1"},
        }
        _, session = self.mcp("initialize", hello)
        file = self.new_file()
        arguments = {
            "templateId": "upgrade_trial",
            "inputs": {"steps": 1, "file": str(file)},
            "options": {"mode": "async"},
        }
        call = {"name": "run_task_template", "arguments": arguments}
        answer, _ = self.mcp("tools/call", call, session)
        run = answer["structuredContent"]
        self.accepted.add(run["runId"])
        self.succeed(run["runId"])
        self.expect_line(file)

    def mcp(self, method: str, params: Any, session: str = "") -> tuple[Any, str]:
        """Make an MCP request; return its result, and the id of the session."""
        web = self.fleet.web()
        headers = {
            "Authorization": f"Bearer {self._tokens['caller']}",
            "Accept": "application/json, text/event-stream",
            **({"Mcp-Session-Id": session} if session else {}),
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self._client.post(f"{web.address}/mcp", json=message, headers=headers)
        lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
        text = lines[-1] if lines else answer.text
        if answer.status_code != httpx.codes.OK or "result" not in json.loads(text):
            raise UnexpectedAnswer(
                f"{web.name} MCP {method} {answer.status_code}: {answer.text[:600]}"
            )
        return json.loads(text)["result"], answer.headers.get("mcp-session-id", "")

    def chat(self) -> None:
        """A chat of two messages whose request needs a confirmation."""
        number = next(self._number)
        message = {
            "user_id": "alice",
            "idempotency_key": f"chat-{number}",
            "message": "Delete all rows of the orders table.",
        }
        first = self.call("chat", message)
        if self.call("chat", message)["session_id"] != first["session_id"]:
            raise UnexpectedAnswer("one key, two chats")
        slots = {
            "environment": "reporting",
            "target": "the table orders",
            "success_criteria": "it is empty",
        }
        again = {**message, "idempotency_key": f"chat-{number}-2", "slots": slots}
        second = self.call("chat", {**again, "session_id": first["session_id"]})
        asked = second["trace"].get("high_risk_confirmation") or {}
        decision = second["trace"].get("decision_id")
        if not asked.get("confirm_token") or not decision:
            raise UnexpectedAnswer(f"no confirmation requested: {json.dumps(second)[:900]}")
        answer = {"user_id": "alice", "confirm_token": asked["confirm_token"]}
        self.call(f"decision/{decision}/confirm", answer)
        outcome = {"outcome_status": "success", "outcome_note": "Deleted."}
        self.call(f"decision/{decision}/outcome?user_id=alice", outcome)

    def stream_events(self) -> None:
        """A stream of a run's events, which has to have all of them soon."""
        file = self.new_file()
        run_id = self.submit("upgrade_trial", {"steps": 20, "file": str(file)})
        web = self.fleet.web()
        headers = {
            "Authorization": f"Bearer {self._tokens['caller']}",
            "Accept": "text/event-stream",
        }
        url, ids, last_gap = f"{web.address}/api/v1/runs/{run_id}/events", [], 0.0
        with self._client.stream("GET", url, headers=headers) as stream:
            for line in stream.iter_lines():
                if line.startswith("id:"):
                    ids.append(int(line[3:]))
                if line.startswith("data:"):
                    at = json.loads(line[5:]).get("at")
                    last_gap = max(last_gap, time.time() - at / 1000 if at else 0)
        if ids != list(range(1, len(ids) + 1)):
            raise UnexpectedAnswer(f"{web.name}: the stream of {run_id} has the events {ids}")
        self.delays.setdefault(self._phase, []).append(last_gap)
        self.succeed(run_id)


def may_be_repeated(body: Any) -> bool:
    """Return whether a request only reads, or has an idempotency key."""
    if body is None:
        return True
    keys = body.keys() | body.get("options", {}).keys()
    return not keys.isdisjoint({"idempotencyKey", "idempotency_key"})


def answer_turn(request: ModelRequest) -> Turn:
    """Answer as the model of `talk_to_agent` does: ask first, then repeat the answer."""
    results = [one for one in request.body["messages"] if one["role"] == "tool"]
    if not results:
        return Turn("", [Call("list_files", {"path": "."}, "c0")])
    if len(results) == 1:
        return Turn("", [Call("ask_followup_question", {"question": "Which?"}, "c1")])
    return complete(f"You said {json.dumps(results[1])}")
