"""Requests to the person at the host while a call is handled (MCP, "Elicitation").

In the protocol versions with a handshake the server requests the input on the client's stream. In
version 2026-07-28 it answers the call with what it needs (`InputRequired`), and the client makes
the same call again with the person's response.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS


class InputRequired(Exception):
    """The call needs a person's response, with which the client makes it again."""

    def __init__(self, key: str, request: types.ElicitRequest) -> None:
        super().__init__(request.params.message)
        self.result = types.InputRequiredResult(input_requests={key: request})


@dataclass(frozen=True, slots=True)
class Elicitation:
    """Requests the input of one call; a host that does not support it is not bothered.

    A call makes one request. Its `key` names what it is about: when the call is made again with the
    response, the run may wait for something else, to which the response does not belong.
    """

    ctx: ServerRequestContext[Any]
    params: types.CallToolRequestParams

    async def request_form(
        self, key: str, message: str, schema: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return what the person entered; None if they declined, or the host has no forms.

        Raises:
            InputRequired: The client has to make the call again with the response.
        """
        declared = self._declared
        if declared is None or (declared.form is None and declared.url is not None):
            return None
        form = types.ElicitRequestFormParams(message=message, requested_schema=dict(schema))
        response = await self._response(key, form)
        if response is None or response.action != "accept":
            return None
        return dict(response.content or {})

    async def show_url(self, key: str, message: str, url: str, elicitation_id: str) -> bool:
        """Have the host offer a URL to the person; return whether they agreed to open it. That
        says nothing about what they do there.

        Raises:
            InputRequired: As `request_form`.
        """
        if self._declared is None or self._declared.url is None:
            return False
        page = types.ElicitRequestURLParams(message=message, url=url, elicitation_id=elicitation_id)
        response = await self._response(key, page)
        return response is not None and response.action == "accept"

    @property
    def _declared(self) -> types.ElicitationCapability | None:
        """What the client declared; an empty object means forms."""
        capabilities = self.ctx.session.client_capabilities
        return None if capabilities is None else capabilities.elicitation

    async def _response(
        self, key: str, request: types.ElicitRequestFormParams | types.ElicitRequestURLParams
    ) -> types.ElicitResult | None:
        if self.ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            responses = self.params.input_responses
            if not responses:
                raise InputRequired(key, types.ElicitRequest(params=request))
            given = responses.get(key)
            return given if isinstance(given, types.ElicitResult) else None
        if not self.ctx.session.can_send_request:
            return None
        try:
            return await self._send(request)
        except MCPError:  # the host cannot, after all
            return None

    async def _send(
        self, request: types.ElicitRequestFormParams | types.ElicitRequestURLParams
    ) -> types.ElicitResult:
        session, request_id = self.ctx.session, self.ctx.request_id
        if isinstance(request, types.ElicitRequestFormParams):
            return await session.elicit_form(
                request.message, request.requested_schema, related_request_id=request_id
            )
        return await session.elicit_url(
            request.message,
            request.url,
            str(request.elicitation_id),
            related_request_id=request_id,
        )
