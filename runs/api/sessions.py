"""Named browser sessions over REST: what they are, their names, their end. Never their state."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.api.arguments import RequestArguments
from decisions.api.openapi import component, operation
from decisions.api.view import ApiView, json_response, principal_of
from runs.sessions import contract
from runs.sessions import services as sessions

_SESSION = component("Session", contract.SESSION)
_LISTED = component(
    "SessionList",
    {
        **contract.SESSION_LIST,
        "properties": {
            **contract.SESSION_LIST["properties"],
            "sessions": {"type": "array", "items": _SESSION},
        },
    },
)
_CLOSED = component("ClosedSession", contract.CLOSED)
_NEW = component("NewSession", contract.CREATE_INPUT)
_RENAMED = component(
    "SessionName",
    {
        **contract.CREATE_INPUT,
        "required": ["name"],
    },
)

_LIST = RequestArguments(contract.LIST_INPUT)
_CREATE = RequestArguments(contract.CREATE_INPUT)
_ID = RequestArguments(contract.ID_INPUT)
_RENAME = RequestArguments(contract.RENAME_INPUT)
_CLONE = RequestArguments(contract.CLONE_INPUT)

_IN_PATH = {"sessionId": "From a run, or from the list of sessions."}
_READ = (400, 401, 403, 404, 429)
_WRITE = (*_READ, 413, 415)
_SHOWN, _MADE = {200: contract.EXAMPLE}, {201: contract.EXAMPLE}


class SessionsView(ApiView):
    """GET and POST /sessions."""

    scopes = {"GET": "sessions:read", "POST": "sessions:write"}

    @operation(
        "listSessions",
        "Your open sessions",
        tag="sessions",
        response=_LISTED,
        arguments=_LIST,
        refusals=_READ,
    )
    def get(self, request: Request) -> HttpResponse:
        """Newest first; the next page starts at `offset` = `nextCursor`."""
        asked = self.arguments(_LIST)
        return json_response(sessions.list_sessions(principal=principal_of(request), **asked))

    @operation(
        "createSession",
        "Make a session",
        tag="sessions",
        response=_SESSION,
        status=201,
        body=_NEW,
        examples=_MADE,
        refusals=_WRITE,
    )
    def post(self, request: Request) -> HttpResponse:
        """An empty session that runs can share by its `sessionId`, one after the other.

        `login_keep_session` makes one by itself.
        """
        asked = self.arguments(_CREATE)
        return _made(sessions.create_session(principal=principal_of(request), **asked))


class SessionView(ApiView):
    """GET, PATCH and DELETE /sessions/{sessionId}."""

    scopes = {"GET": "sessions:read", "PATCH": "sessions:write", "DELETE": "sessions:write"}

    @operation(
        "getSession",
        "One session",
        tag="sessions",
        response=_SESSION,
        path=_IN_PATH,
        examples=_SHOWN,
        refusals=_READ,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Whether it is open, who uses it, until when its cookies say that it is logged in."""
        session_id = self.arguments(_ID)["sessionId"]
        shown = sessions.get_session(principal=principal_of(request), session_id=session_id)
        return json_response(shown)

    @operation(
        "renameSession",
        "Rename a session",
        tag="sessions",
        response=_SESSION,
        path=_IN_PATH,
        body=_RENAMED,
        examples=_SHOWN,
        refusals=_WRITE,
    )
    def patch(self, request: Request, **path: str) -> HttpResponse:
        """Give it another name; its id stays."""
        asked = self.arguments(_RENAME)
        shown = sessions.rename_session(
            principal=principal_of(request), session_id=asked["sessionId"], name=asked["name"]
        )
        return json_response(shown)

    @operation(
        "closeSession",
        "Close a session",
        tag="sessions",
        response=_CLOSED,
        path=_IN_PATH,
        refusals=(*_WRITE, 409),
    )
    def delete(self, request: Request, **path: str) -> HttpResponse:
        """Its cookies and its storage are deleted at once, for good.

        While a run uses it the answer is 409; runs that wait for it fail with SESSION_NOT_FOUND.
        """
        session_id = self.arguments(_ID)["sessionId"]
        return json_response(
            sessions.close_session(principal=principal_of(request), session_id=session_id)
        )


class CloneView(ApiView):
    """POST /sessions/{sessionId}/clone."""

    scopes = {"POST": "sessions:write"}

    @operation(
        "cloneSession",
        "Clone a session",
        tag="sessions",
        response=_SESSION,
        status=201,
        path=_IN_PATH,
        body=_NEW,
        examples=_MADE,
        refusals=_WRITE,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """A session of its own that begins as this one was saved last, at the end of a run."""
        asked = self.arguments(_CLONE)
        session_id = asked.pop("sessionId")
        clone = sessions.clone_session(
            principal=principal_of(request), session_id=session_id, **asked
        )
        return _made(clone)


def _made(session: dict[str, Any]) -> HttpResponse:
    place = {"Location": f"/api/v1/sessions/{session['sessionId']}"}
    return json_response(session, status=HTTPStatus.CREATED, headers=place)
