"""POST /chat over REST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse, QueryDict
from rest_framework.request import Request

from decisions.api.continuity_view import ContinuityView, continuity_operation
from decisions.api.schemas import chat as schemas
from decisions.chat.services import chat, require_key
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import component
from decisions.rest_base.view import json_response, principal_of


class _ChatArguments(RequestArguments):
    """Arguments of a chat call: a missing idempotency_key is reported before any other error."""

    def of_body(self, body: Any, query: QueryDict, path: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments as `RequestArguments.of_body`.

        Raises:
            InvalidInput: Also if the key is missing or blank.
        """
        if isinstance(body, dict):
            require_key(body)
        return super().of_body(body, query, path)


_CHAT = _ChatArguments(schemas.CHAT_INPUT)
_EXAMPLE = {
    "user_id": "alice",
    "message": "Delete the orders of 2019 from the reporting database.",
    "idempotency_key": "alice-2026-11-22-1",
    "slots": {
        "environment": "reporting",
        "target": "the table orders, rows of 2019",
        "success_criteria": "no row of 2019 is left",
    },
}


class ChatView(ContinuityView):
    """POST /chat."""

    scopes = {"POST": "continuity:write"}

    @continuity_operation(
        "chat",
        "Decide on a message before acting on it",
        response=component("ChatAnswer", schemas.CHAT_OUTPUT),
        body=component("Chat", schemas.CHAT_INPUT),
        body_example=_EXAMPLE,
        refusals=(400, 401, 403, 409, 413, 415, 429),
    )
    async def post(self, request: Request) -> HttpResponse:
        """Returns questions if information is missing (`trace.mode` is `clarify_first`, no
        decision). Else returns a decision: `act`, `clarify`, or `confirm`; for `confirm`,
        `trace.high_risk_confirmation` describes how a person confirms.

        The same key with the same body returns the same response, without the confirm token.
        """
        call = await self.arguments_of_body(_CHAT)
        return json_response(await chat(principal=principal_of(request), call=call))
