"""One client for REST and for MCP, so that a test writes its calls once for both."""

from __future__ import annotations

from typing import Any

import httpx

from tests.contract.mcp_host import TIMEOUT_S, error_of, structured
from tests.contract.mcp_http_host import WebHost
from tests.contract.rest_calls import request_of
from tests.support.rest.rest import NO_TLS, bearer, refusal

Answer = dict[str, Any]


class Refusal(Exception):
    """Raised when a call is answered with an error."""

    def __init__(self, error: Answer) -> None:
        super().__init__(error["message"])
        self.error = error


class Surface:
    """A client that sends the S0 calls by their names."""

    def __init__(self, web: str, token: str, *, over: str) -> None:
        self._host = WebHost(web, token) if over == "mcp" else None
        self._client = httpx.Client(
            base_url=web, headers=bearer(token), timeout=TIMEOUT_S, verify=NO_TLS
        )

    def call(self, tool: str, **arguments: Any) -> Answer:
        """Send a call and return its answer, or raise Refusal."""
        if self._host is not None:
            answer = self._host.call(tool, arguments)
            if answer["result"]["isError"]:
                raise Refusal(error_of(answer))
            return structured(answer)
        response = self._client.request(**request_of(tool, arguments))
        if not response.is_success:
            raise Refusal(refusal(response, response.status_code))
        return dict(response.json())

    def run(self, *do: str, **options: Any) -> Answer:
        """Run the test template."""
        inputs = {"do": list(do or ("ok",))}
        return self.call(
            "run_task_template", templateId="test_stepwise", inputs=inputs, options=options
        )

    def close(self) -> None:
        """Close the connection."""
        if self._host is not None:
            self._host.close()
        self._client.close()
