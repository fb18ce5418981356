"""REST views of paired browsers (S1 §1)."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.foundation.validation.json_schema import closed, page_schema
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import READ_REFUSALS, WRITE_REFUSALS, component, operation
from decisions.rest_base.view import ApiView, json_response, principal_of
from runners.api.schemas import paired_browsers as schemas
from runners.paired_browser import services

_CLIENT = component("PluginClient", schemas.CLIENT)
_LISTED = component("PluginClientList", page_schema("clients", _CLIENT))
_EXTENSIONS = component("ExtensionList", schemas.EXTENSIONS)
_SNAPSHOT = component("BrowserSnapshot", schemas.SNAPSHOT)
_TICKET = component("PluginTicket", schemas.TICKET)
_NEW_TICKET = component("NewPluginTicket", schemas.TICKET_INPUT)
_REVOKED = component("RevokedPluginClient", schemas.REVOKED)

_LIST = RequestArguments(schemas.LIST_INPUT)
_NONE = RequestArguments(closed({}))
_ID = RequestArguments(schemas.ID_INPUT)
_NEW = RequestArguments(schemas.TICKET_INPUT)
_IN_PATH = {"clientId": "From the list of paired browsers."}


class PairingTicketView(ApiView):
    """POST /plugin/ticket."""

    scopes = {"POST": services.WRITE}

    @operation(
        "makePluginTicket",
        "A ticket to pair a browser",
        tag="browsers",
        response=_TICKET,
        status=201,
        body=_NEW_TICKET,
        body_example={"name": "My laptop"},
        examples={201: schemas.TICKET_EXAMPLE},
        refusals=(400, 401, 403, 409, 413, 415, 429),
    )
    def post(self, request: Request) -> HttpResponse:
        """Valid once, for five minutes. The browser that presents it belongs to you: only your
        tasks may act in it.
        """
        fields = self.arguments(_NEW)
        ticket = services.create_ticket(principal=principal_of(request), **fields)
        return json_response(ticket, status=HTTPStatus.CREATED)


class ExtensionListView(ApiView):
    """GET /extension/extension-list."""

    scopes = {"GET": services.READ}

    @operation(
        "listExtensions",
        "Browsers that a task can choose from",
        tag="browsers",
        response=_EXTENSIONS,
        refusals=(400, 401, 403, 429),
    )
    def get(self, request: Request) -> HttpResponse:
        """Your paired browsers, the last seen first."""
        self.arguments(_NONE)
        return json_response(services.list_extensions(principal=principal_of(request)))


class PairedBrowsersView(ApiView):
    """GET /plugin/clients."""

    scopes = {"GET": services.READ}

    @operation(
        "listPluginClients",
        "Your paired browsers",
        tag="browsers",
        response=_LISTED,
        arguments=_LIST,
        refusals=(400, 401, 403, 429),
    )
    def get(self, request: Request) -> HttpResponse:
        """The last seen first; the next page starts at `offset` = `nextCursor`."""
        fields = self.arguments(_LIST)
        return json_response(services.list_browsers(principal=principal_of(request), **fields))


class PairedBrowserView(ApiView):
    """GET and DELETE /plugin/clients/{clientId}."""

    scopes = {"GET": services.READ, "DELETE": services.WRITE}

    @operation(
        "getPluginClient",
        "One paired browser",
        tag="browsers",
        response=_CLIENT,
        path=_IN_PATH,
        examples={200: schemas.EXAMPLE},
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Return whether it is connected, and when it was seen and used last."""
        client_id = self.arguments(_ID)["clientId"]
        found = services.get_browser(principal=principal_of(request), client_id=client_id)
        return json_response(found)

    @operation(
        "revokePluginClient",
        "Remove a paired browser",
        tag="browsers",
        response=_REVOKED,
        path=_IN_PATH,
        refusals=(*WRITE_REFUSALS, 409),
    )
    def delete(self, request: Request, **path: str) -> HttpResponse:
        """Its connection is closed, and it cannot connect again before it is paired again."""
        client_id = self.arguments(_ID)["clientId"]
        revoked = services.revoke(principal=principal_of(request), client_id=client_id)
        return json_response(revoked)


class SnapshotView(ApiView):
    """GET /plugin/clients/{clientId}/snapshot."""

    scopes = {"GET": services.READ}

    @operation(
        "getBrowserSnapshot",
        "What a paired browser has open",
        tag="browsers",
        response=_SNAPSHOT,
        path=_IN_PATH,
        examples={200: schemas.SNAPSHOT_EXAMPLE},
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Its windows, tab groups and tabs, without those of incognito windows. It is kept for an
        hour after the browser was last connected.
        """
        client_id = self.arguments(_ID)["clientId"]
        snapshot = services.get_snapshot(principal=principal_of(request), client_id=client_id)
        return json_response(snapshot)
