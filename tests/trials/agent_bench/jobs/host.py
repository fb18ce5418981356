"""An MCP host over stdio that counts what reaches it and keeps a transcript.

It knows `tools/list` and the answers. The bytes of the catalogue are not counted.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

MANAGE = Path(__file__).parents[4] / "manage.py"
PROTOCOL = "2025-06-18"
WAIT_S = 180.0


@dataclass
class Counted:
    """What one job cost.

    Attributes:
        calls: tool calls.
        bytes: of the answers as the host's model gets them: texts, and structured content unless
            the text repeats it.
        wire_bytes: of all messages from the server, as sent, without the catalogue.
        seconds: spent waiting for answers.
    """

    calls: int = 0
    bytes: int = 0
    wire_bytes: int = 0
    seconds: float = 0.0
    transcript: list[dict[str, Any]] = field(default_factory=list)


class JobHost:
    """One connection to a server process of an installation, and the counts of one job."""

    def __init__(self, env: dict[str, str], counted: Counted) -> None:
        self._env, self.counted = env, counted
        self._id = 0
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(MANAGE), "mcp_stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._env,
            cwd=self._env["HOME"],
        )
        try:
            self._initialize()
        except Exception:
            self.kill()
            raise

    def _initialize(self) -> None:
        client = {"name": "job-host", "version": "1"}
        params = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        self._request("initialize", params)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self._request("tools/list", {})

    def call(self, name: str, **arguments: Any) -> Any:
        """Call a tool; return its structured content, else the text, read as JSON if it is."""
        started = time.perf_counter()
        message, wire = self._request("tools/call", {"name": name, "arguments": arguments})
        self.counted.seconds += time.perf_counter() - started
        result = message.get("result") or {"error": message["error"]}
        texts = [block.get("text", "") for block in result.get("content", ())]
        structured = result.get("structuredContent")
        size = _model_bytes(texts, structured) if "error" not in result else wire
        self._count(wire, size, {"call": name, "arguments": arguments, "answer": result})
        if structured is not None:
            return structured
        return _parsed("\n".join(texts)) if texts else result

    def _count(self, wire: int, size: int, entry: dict[str, Any]) -> None:
        self.counted.calls += 1
        self.counted.bytes += size
        self.counted.wire_bytes += wire
        self.counted.transcript.append({**entry, "bytes": size, "wireBytes": wire})

    def kill(self) -> None:
        """Kill the server process as a crashed host does."""
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def restart(self) -> None:
        """Kill the server process, and start another one."""
        self.kill()
        self.counted.transcript.append({"event": "the host was killed and started again"})
        self._start()

    def close(self) -> None:
        """Close the connection as a host that exits does."""
        self._close_pipe(self.process.stdin)
        self._end()

    def _end(self) -> None:
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            self._close_pipe(pipe)

    def _close_pipe(self, pipe: IO[bytes] | None) -> None:
        if pipe is not None:
            with suppress(BrokenPipeError):  # the server is gone, and a request was not sent
                pipe.close()

    def _send(self, message: dict[str, Any]) -> None:
        pipe: IO[bytes] | None = self.process.stdin
        assert pipe is not None
        pipe.write(json.dumps(message).encode() + b"\n")
        pipe.flush()

    def _request(self, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """Send a request; return its answer and the bytes of all messages until then."""
        self._id += 1
        self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        killing = threading.Timer(WAIT_S, self.process.kill)
        killing.start()
        received = 0
        try:
            assert self.process.stdout is not None
            for line in self.process.stdout:
                received += len(line)
                message: dict[str, Any] = json.loads(line)
                if message.get("id") == self._id:
                    return message, received
                self.counted.transcript.append({"notification": message})
        finally:
            killing.cancel()
        raise ConnectionError(f"{method}: the server ended without an answer")


def _model_bytes(texts: list[str], structured: Any) -> int:
    text = "\n".join(texts)
    if structured is None:
        return len(text.encode())
    compact = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
    if _parsed(text) == structured:
        return len(compact.encode())
    return len(text.encode()) + len(compact.encode())


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def host_environment(home: Path) -> dict[str, str]:
    """Return the environment in which a host starts the server for a home of its own."""
    kept = ("PATH", "HOME", "LANG", "TZ", "PLAYWRIGHT_BROWSERS_PATH", "VIRTUAL_ENV")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    return env | {"CONTINUITY_HOME": str(home), "CONTINUITY_LLM_MODEL": ""}


def stop_stack(env: dict[str, str]) -> None:
    """Stop the stack that the hosts of a home started."""
    subprocess.run([sys.executable, str(MANAGE), "down"], env=env, capture_output=True, check=False)
