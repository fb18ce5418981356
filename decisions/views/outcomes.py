"""What became of a decision, over REST."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.api.arguments import RequestArguments
from decisions.api.openapi import component
from decisions.api.view import json_response, principal_of
from decisions.continuity import contract
from decisions.continuity.outcomes import report_outcome
from decisions.views.base import ContinuityView, continuity_operation

_OUTCOME = RequestArguments(contract.OUTCOME_INPUT, in_query=("user_id",))
_QUERY = RequestArguments(contract.STATE_INPUT)


class OutcomeView(ContinuityView):
    """POST /decision/{decision_id}/outcome."""

    scopes = {"POST": "continuity:write"}

    @continuity_operation(
        "reportOutcome",
        "Say what became of a decision",
        arguments=_QUERY,
        path={"decision_id": "From the answer to the message."},
        answer=component("ContinuityOutcome", contract.OUTCOME_OUTPUT),
        body=component("ReportOutcome", contract.body_of(contract.OUTCOME_INPUT, "decision_id")),
        body_example={"outcome_status": "success", "outcome_note": "The release is out."},
        refusals=(400, 401, 403, 404, 409, 413, 415, 429),
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Once per decision: the identical report again returns the record, another is refused.
        The user's state moves by it, and a success that says how suggests a success path.
        """
        call = self.arguments(_OUTCOME)
        return json_response(report_outcome(principal=principal_of(request), call=call))
