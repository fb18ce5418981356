"""REST views of the Continuity API except chat: confirmations, outcomes, state and objects (S2)."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.api.arguments import RequestArguments
from decisions.api.openapi import component
from decisions.api.view import json_response, principal_of
from decisions.authorization.confirm_by_token import confirm_decision
from decisions.continuity import contract, objects, state
from decisions.continuity.outcomes import report_outcome
from decisions.validation.json_schema import closed
from decisions.views.base import ContinuityView, continuity_operation

_CONFIRM = RequestArguments(contract.CONFIRM_INPUT_REST)
_CONFIRM_BODY = {
    **closed(
        {name: contract.CONFIRM_INPUT["properties"][name] for name in ("user_id", "confirm_token")}
    ),
    "required": ["user_id"],
}
_OUTCOME = RequestArguments(contract.OUTCOME_INPUT, in_query=("user_id",))
_STATE = RequestArguments(contract.STATE_INPUT)
_LIST = RequestArguments(contract.LIST_OBJECTS_INPUT)
_SHELL = RequestArguments(contract.PUT_SHELL_INPUT)
_PATH = RequestArguments(contract.PUT_SUCCESS_PATH_INPUT)
_READ = (400, 401, 403, 429)
_WRITE = (*_READ, 409, 412, 413, 415)
_IN_PATH = {"user_id": "A user that the token may act for."}
_PUT = component("ContinuityObjectWritten", contract.PUT_OBJECT_OUTPUT)


class ConfirmView(ContinuityView):
    """POST /decision/{decision_id}/confirm."""

    scopes = {"POST": "continuity:write"}

    @continuity_operation(
        "confirmDecision",
        "Confirm a high-risk decision",
        path={"decision_id": "From the answer to the message."},
        response=component("ContinuityConfirmed", contract.CONFIRM_OUTPUT),
        body=component("ConfirmDecision", _CONFIRM_BODY),
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


class OutcomeView(ContinuityView):
    """POST /decision/{decision_id}/outcome."""

    scopes = {"POST": "continuity:write"}

    @continuity_operation(
        "reportOutcome",
        "Say what became of a decision",
        arguments=_STATE,
        path={"decision_id": "From the answer to the message."},
        response=component("ContinuityOutcome", contract.OUTCOME_OUTPUT),
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


class StateView(ContinuityView):
    """GET /user/{user_id}/state."""

    scopes = {"GET": "continuity:read"}

    @continuity_operation(
        "getUserState",
        "What a user has to spend",
        path=_IN_PATH,
        response=component("ContinuityState", contract.STATE_OUTPUT),
        refusals=_READ,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Six axes from 0 (nothing left) to 1, how sure each is, and the scarcest of them."""
        asked = self.arguments(_STATE)
        return json_response(state.get_state(principal=principal_of(request), **asked))


class ObjectsView(ContinuityView):
    """GET /user/{user_id}/objects."""

    scopes = {"GET": "continuity:read"}

    @continuity_operation(
        "listUserObjects",
        "Shell and success paths",
        path=_IN_PATH,
        arguments=_LIST,
        response=component("ContinuityObjects", contract.LIST_OBJECTS_OUTPUT),
        refusals=_READ,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Current versions, the last written first."""
        asked = self.arguments(_LIST)
        listed = objects.list_objects(
            principal=principal_of(request),
            user_id=asked["user_id"],
            object_type=asked.get("type"),
            limit=asked.get("limit", 50),
        )
        return json_response(listed)


class _WritingView(ContinuityView):
    """A call that writes an object; If-Match and ETag carry its version."""

    scopes = {"POST": "continuity:write"}

    def call(self, wanted: RequestArguments) -> dict[str, Any]:
        """Return the call with the version that the header If-Match names."""
        asked = self.arguments(wanted)
        tags = self.request.headers.get("If-Match")
        return asked if tags is None else {**asked, "if_match": tags}

    @staticmethod
    def written(answer: dict[str, Any]) -> HttpResponse:
        """Answer with the version as an ETag."""
        return json_response(answer, headers={"ETag": f'"{answer["item"]["version"]}"'})


class ShellView(_WritingView):
    """POST /user/{user_id}/objects/shell."""

    @continuity_operation(
        "putShell",
        "Write the Shell",
        path=_IN_PATH,
        response=_PUT,
        refusals=_WRITE,
        body=component("ContinuityShell", contract.body_of(contract.PUT_SHELL_INPUT)),
        body_example={
            "social_interface": {"tone": "plain"},
            "narratives": {},
            "confidence": "high",
            "validity": "long",
            "source": "user",
        },
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Overwrites the user's one Shell; older versions are kept. An inferred one has to say what
        from (`evidence`). `If-Match` names the version that it is to replace.
        """
        call = self.call(_SHELL)
        return self.written(objects.put_shell(principal=principal_of(request), call=call))


class LatestShellView(ContinuityView):
    """GET /user/{user_id}/objects/shell/latest."""

    scopes = {"GET": "continuity:read"}

    @continuity_operation(
        "getLatestShell",
        "The Shell as it is now",
        path=_IN_PATH,
        response=component("ContinuityLatestShell", contract.LATEST_SHELL_OUTPUT),
        refusals=_READ,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """The user's one Shell in its newest version, which the header ETag names for a write with
        `If-Match`; `item` is null for a user who has none yet.
        """
        asked = self.arguments(_STATE)
        answer = objects.get_latest_shell(principal=principal_of(request), **asked)
        item = answer["item"]
        return json_response(answer, headers={"ETag": f'"{item["version"]}"'} if item else None)


class SuccessPathView(_WritingView):
    """POST /user/{user_id}/objects/success-path."""

    @continuity_operation(
        "putSuccessPath",
        "Write a success path",
        path=_IN_PATH,
        response=_PUT,
        refusals=_WRITE,
        body=component("ContinuitySuccessPath", contract.body_of(contract.PUT_SUCCESS_PATH_INPUT)),
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
        """A way that worked, by its name: the same name again is a new version. Every slot that is
        required, or that a step uses, needs its definition.
        """
        call = self.call(_PATH)
        return self.written(objects.put_success_path(principal=principal_of(request), call=call))
