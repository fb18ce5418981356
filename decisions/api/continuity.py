"""REST views of the Continuity API except chat: confirmations, outcomes, state and objects (S2)."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.api.continuity_view import ContinuityView, continuity_operation
from decisions.api.schemas import continuity as schemas
from decisions.authorization.confirm_by_token import confirm_decision
from decisions.foundation.validation.json_schema import closed
from decisions.memory import objects, state
from decisions.memory.outcomes import report_outcome
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import component
from decisions.rest_base.view import json_response, principal_of

_CONFIRM = RequestArguments(schemas.CONFIRM_INPUT_REST)
_CONFIRM_BODY = {
    **closed(
        {
            name: schemas.CONFIRM_INPUT_REST["properties"][name]
            for name in ("user_id", "confirm_token", "shown_digest")
        }
    ),
    "required": ["user_id"],
}
_OUTCOME = RequestArguments(schemas.OUTCOME_INPUT, in_query=("user_id",))
_STATE = RequestArguments(schemas.STATE_INPUT)
_LIST = RequestArguments(schemas.LIST_OBJECTS_INPUT)
_SHELL = RequestArguments(schemas.PUT_SHELL_INPUT)
_PATH = RequestArguments(schemas.PUT_SUCCESS_PATH_INPUT)
_READ = (400, 401, 403, 429)
_WRITE = (*_READ, 409, 412, 413, 415)
_IN_PATH = {"user_id": "A user that the token may act for."}
_PUT = component("ContinuityObjectWritten", schemas.PUT_OBJECT_OUTPUT)


class ConfirmView(ContinuityView):
    """POST /decision/{decision_id}/confirm."""

    scopes = {"POST": "continuity:write"}

    @continuity_operation(
        "confirmDecision",
        "Confirm a high-risk decision",
        path={"decision_id": "From the response to the message."},
        response=component("ContinuityConfirmed", schemas.CONFIRM_OUTPUT),
        body=component("ConfirmDecision", _CONFIRM_BODY),
        body_example={"user_id": "alice", "confirm_token": "…"},
        refusals=(400, 401, 403, 409, 413, 415, 429),
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Confirms a decision with the token of its response, once and before it expires. A
        credential with the scope `confirm` needs no token and can confirm tool calls and steps of
        runs too, but not its own requests. With a `shown_digest` that is not the decision's,
        nothing is confirmed: 409 `shown_digest_mismatch`.
        """
        call = self.arguments(_CONFIRM)
        return json_response(confirm_decision(principal=principal_of(request), call=call))


class OutcomeView(ContinuityView):
    """POST /decision/{decision_id}/outcome."""

    scopes = {"POST": "continuity:write"}

    @continuity_operation(
        "reportOutcome",
        "Report the outcome of a decision",
        arguments=_STATE,
        path={"decision_id": "From the response to the message."},
        response=component("ContinuityOutcome", schemas.OUTCOME_OUTPUT),
        body=component("ReportOutcome", schemas.body_of(schemas.OUTCOME_INPUT, "decision_id")),
        body_example={"outcome_status": "success", "outcome_note": "The release is out."},
        refusals=(400, 401, 403, 404, 409, 413, 415, 429),
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Once per decision: the identical report again returns the record, a different one is
        refused. The report changes the user's state, and a success with a procedure suggests a
        success path.
        """
        call = self.arguments(_OUTCOME)
        return json_response(report_outcome(principal=principal_of(request), call=call))


class StateView(ContinuityView):
    """GET /user/{user_id}/state."""

    scopes = {"GET": "continuity:read"}

    @continuity_operation(
        "getUserState",
        "Read a user's state",
        path=_IN_PATH,
        response=component("ContinuityState", schemas.STATE_OUTPUT),
        refusals=_READ,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Six axes from 0 (nothing left) to 1, the confidence of each, and the main constraint."""
        call = self.arguments(_STATE)
        return json_response(state.get_state(principal=principal_of(request), **call))


class ObjectsView(ContinuityView):
    """GET /user/{user_id}/objects."""

    scopes = {"GET": "continuity:read"}

    @continuity_operation(
        "listUserObjects",
        "List the Shell and success paths",
        path=_IN_PATH,
        arguments=_LIST,
        response=component("ContinuityObjects", schemas.LIST_OBJECTS_OUTPUT),
        refusals=_READ,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Current versions, last written first."""
        call = self.arguments(_LIST)
        page = objects.list_objects(
            principal=principal_of(request),
            user_id=call["user_id"],
            object_type=call.get("type"),
            limit=call.get("limit", 50),
        )
        return json_response(page)


class _WriteView(ContinuityView):
    """A call that writes an object; If-Match and ETag are its version."""

    scopes = {"POST": "continuity:write"}

    def call(self, wanted: RequestArguments) -> dict[str, Any]:
        """Return the arguments, with the header If-Match as if_match."""
        arguments = self.arguments(wanted)
        tags = self.request.headers.get("If-Match")
        return arguments if tags is None else {**arguments, "if_match": tags}

    @staticmethod
    def written(result: dict[str, Any]) -> HttpResponse:
        """Return the response to a write, with the version as its ETag."""
        return json_response(result, headers={"ETag": f'"{result["item"]["version"]}"'})


class ShellView(_WriteView):
    """POST /user/{user_id}/objects/shell."""

    @continuity_operation(
        "putShell",
        "Write the Shell",
        path=_IN_PATH,
        response=_PUT,
        refusals=_WRITE,
        body=component("ContinuityShell", schemas.body_of(schemas.PUT_SHELL_INPUT)),
        body_example={
            "social_interface": {"tone": "plain"},
            "narratives": {},
            "confidence": "high",
            "validity": "long",
            "source": "user",
        },
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Replaces the user's Shell; older versions are kept. An inferred Shell needs `evidence`.
        `If-Match` is the version to replace.
        """
        call = self.call(_SHELL)
        return self.written(objects.put_shell(principal=principal_of(request), call=call))


class LatestShellView(ContinuityView):
    """GET /user/{user_id}/objects/shell/latest."""

    scopes = {"GET": "continuity:read"}

    @continuity_operation(
        "getLatestShell",
        "Read the Shell",
        path=_IN_PATH,
        response=component("ContinuityLatestShell", schemas.LATEST_SHELL_OUTPUT),
        refusals=_READ,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """The user's Shell in its current version, which is the header ETag, for a write with
        `If-Match`. `item` is null if the user has no Shell.
        """
        call = self.arguments(_STATE)
        latest = objects.get_latest_shell(principal=principal_of(request), **call)
        item = latest["item"]
        return json_response(latest, headers={"ETag": f'"{item["version"]}"'} if item else None)


class SuccessPathView(_WriteView):
    """POST /user/{user_id}/objects/success-path."""

    @continuity_operation(
        "putSuccessPath",
        "Write a success path",
        path=_IN_PATH,
        response=_PUT,
        refusals=_WRITE,
        body=component("ContinuitySuccessPath", schemas.body_of(schemas.PUT_SUCCESS_PATH_INPUT)),
        body_example={
            "name": "read the release notes",
            "intent": "read the notes of a release",
            "required_slots": ["url"],
            "slot_definitions": {"url": "where the notes are"},
            "procedure": [{"tool": "read_page", "args": {"url": "${url}"}}],
            "success_criteria": "the text names the version",
            "confidence": "medium",
            "validity": "long",
            "tags": ["release"],
        },
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Writes a success path: a procedure that worked. The same name again is a new version.
        Every slot that is required or used by a step needs a definition.
        """
        call = self.call(_PATH)
        return self.written(objects.put_success_path(principal=principal_of(request), call=call))
