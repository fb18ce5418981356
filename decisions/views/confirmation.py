"""The confirmation of a decision, over REST."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.api.arguments import RequestArguments
from decisions.api.openapi import component
from decisions.api.view import json_response, principal_of
from decisions.authorization.confirm_by_token import confirm_decision
from decisions.continuity import contract
from decisions.validation.json_schema import closed
from decisions.views.base import ContinuityView, continuity_operation

_CONFIRM = RequestArguments(contract.CONFIRM_INPUT_REST)
_BODY = {
    **closed(
        {name: contract.CONFIRM_INPUT["properties"][name] for name in ("user_id", "confirm_token")}
    ),
    "required": ["user_id"],
}


class ConfirmView(ContinuityView):
    """POST /decision/{decision_id}/confirm."""

    scopes = {"POST": "continuity:write"}

    @continuity_operation(
        "confirmDecision",
        "Confirm a high-risk decision",
        path={"decision_id": "From the answer to the message."},
        answer=component("ContinuityConfirmed", contract.CONFIRM_OUTPUT),
        body=component("ConfirmDecision", _BODY),
        body_example={"user_id": "alice", "confirm_token": "…"},
        refusals=(400, 401, 403, 413, 415, 429),
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """A person said yes: the token of the decision's answer confirms it, once and in time. A
        credential with the scope `confirm` confirms what waits without one, tool calls and steps of
        runs too; it cannot confirm what it asked for itself.
        """
        call = self.arguments(_CONFIRM)
        return json_response(confirm_decision(principal=principal_of(request), call=call))
