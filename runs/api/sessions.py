"""Named browser sessions over REST: list, create, rename, clone, close; never their cookies."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.foundation.validation.json_schema import closed, page_schema
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import READ_REFUSALS, WRITE_REFUSALS, component, operation
from decisions.rest_base.view import ApiView, json_response, principal_of
from runs.api.schemas import sessions as schemas
from runs.sessions import services as sessions

_SESSION = component("Session", schemas.SESSION)
_LISTED = component("SessionList", page_schema("sessions", _SESSION))
_CLOSED = component("ClosedSession", schemas.CLOSED)
_NEW = component("NewSession", schemas.CREATE_INPUT)
_RENAMED = component("SessionName", closed(schemas.CREATE_INPUT["properties"]))

_LIST = RequestArguments(schemas.LIST_INPUT)
_CREATE = RequestArguments(schemas.CREATE_INPUT)
_ID = RequestArguments(schemas.ID_INPUT)
_RENAME = RequestArguments(schemas.RENAME_INPUT)
_CLONE = RequestArguments(schemas.CLONE_INPUT)

_IN_PATH = {"sessionId": "From a run, or from the list of sessions."}
_SHOWN, _CREATED = {200: schemas.EXAMPLE}, {201: schemas.EXAMPLE}


class SessionsView(ApiView):
    """GET and POST /sessions."""

    scopes = {"GET": "sessions:read", "POST": "sessions:write"}

    @operation(
        "listSessions",
        "Your open sessions",
        tag="sessions",
        response=_LISTED,
        arguments=_LIST,
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request) -> HttpResponse:
        """Newest first; the next page starts at `offset` = `nextCursor`."""
        args = self.arguments(_LIST)
        return json_response(sessions.list_sessions(principal=principal_of(request), **args))

    @operation(
        "createSession",
        "Create a session",
        tag="sessions",
        response=_SESSION,
        status=201,
        body=_NEW,
        examples=_CREATED,
        refusals=WRITE_REFUSALS,
    )
    def post(self, request: Request) -> HttpResponse:
        """An empty session that runs can use by its `sessionId`, one after the other.

        `login_keep_session` creates one by itself.
        """
        args = self.arguments(_CREATE)
        return _created(sessions.create_session(principal=principal_of(request), **args))


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
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Return whether it is open, which run uses it, and when its cookies expire."""
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
        refusals=WRITE_REFUSALS,
    )
    def patch(self, request: Request, **path: str) -> HttpResponse:
        """Changes the name; the id stays."""
        args = self.arguments(_RENAME)
        shown = sessions.rename_session(
            principal=principal_of(request), session_id=args["sessionId"], name=args["name"]
        )
        return json_response(shown)

    @operation(
        "closeSession",
        "Close a session",
        tag="sessions",
        response=_CLOSED,
        path=_IN_PATH,
        refusals=(*WRITE_REFUSALS, 409),
    )
    def delete(self, request: Request, **path: str) -> HttpResponse:
        """Its cookies and storage are deleted at once and cannot be restored.

        While a run uses it the response is 409; runs that wait for it fail with SESSION_NOT_FOUND.
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
        examples=_CREATED,
        refusals=WRITE_REFUSALS,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """A new session with the state that this one had at the end of its last run."""
        args = self.arguments(_CLONE)
        session_id = args.pop("sessionId")
        clone = sessions.clone_session(
            principal=principal_of(request), session_id=session_id, **args
        )
        return _created(clone)


def _created(session: dict[str, Any]) -> HttpResponse:
    headers = {"Location": f"/api/v1/sessions/{session['sessionId']}"}
    return json_response(session, status=HTTPStatus.CREATED, headers=headers)
