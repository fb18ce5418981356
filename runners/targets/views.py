"""Targets over REST: where tools are executed (S3 §2). Their tokens go in and never come out."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.api.arguments import RequestArguments
from decisions.api.openapi import component, operation
from decisions.api.view import ApiView, json_response, principal_of
from runners.targets import contract, services

_TARGET = component("Target", contract.TARGET)
_LISTED = component(
    "TargetList",
    {
        **contract.TARGET_LIST,
        "properties": {
            **contract.TARGET_LIST["properties"],
            "targets": {"type": "array", "items": _TARGET},
        },
    },
)
_NEW = component("NewTarget", contract.CREATE_INPUT)
_REPLACED = component("ReplacedTarget", contract.REPLACE_BODY)
_DELETED = component("DeletedTarget", contract.DELETED)

_LIST = RequestArguments(contract.LIST_INPUT)
_CREATE = RequestArguments(contract.CREATE_INPUT)
_ID = RequestArguments(contract.ID_INPUT)
_REPLACE = RequestArguments(contract.REPLACE_INPUT)

_IN_PATH = {"targetId": "From the list of targets."}
_READ = (400, 401, 403, 404, 429)
_WRITE = (*_READ, 413, 415)
_SHOWN = {200: contract.EXAMPLE}


class TargetsView(ApiView):
    """GET and POST /targets."""

    scopes = {"GET": services.READ, "POST": services.ADMIN}

    @operation(
        "listTargets",
        "Where tools are executed",
        tag="targets",
        response=_LISTED,
        arguments=_LIST,
        refusals=(400, 401, 403, 429),
    )
    def get(self, request: Request) -> HttpResponse:
        """Those that a call may name, newest first; the next page starts at `offset` =
        `nextCursor`.
        """
        asked = self.arguments(_LIST)
        return json_response(services.list_targets(principal=principal_of(request), **asked))

    @operation(
        "createTarget",
        "Make a target",
        tag="targets",
        response=_TARGET,
        status=201,
        body=_NEW,
        body_example=contract.NEW_EXAMPLE,
        examples={201: contract.EXAMPLE},
        refusals=(400, 401, 403, 409, 413, 415, 429),
    )
    def post(self, request: Request) -> HttpResponse:
        """A target of the token's workspace. Its tools are denied until a rule of policy allows
        them.
        """
        asked = self.arguments(_CREATE)
        made = services.create_target(principal=principal_of(request), asked=asked)
        place = {"Location": f"/api/v1/targets/{made['targetId']}"}
        return json_response(made, status=HTTPStatus.CREATED, headers=place)


class TargetView(ApiView):
    """GET, PUT and DELETE /targets/{targetId}."""

    scopes = {"GET": services.READ, "PUT": services.ADMIN, "DELETE": services.ADMIN}

    @operation(
        "getTarget",
        "One target",
        tag="targets",
        response=_TARGET,
        path=_IN_PATH,
        examples=_SHOWN,
        refusals=_READ,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Whether it is enabled, its version, when it was seen last. Never its token."""
        target_id = self.arguments(_ID)["targetId"]
        return json_response(
            services.get_target(principal=principal_of(request), target_id=target_id)
        )

    @operation(
        "replaceTarget",
        "Change a target",
        tag="targets",
        response=_TARGET,
        path=_IN_PATH,
        body=_REPLACED,
        examples=_SHOWN,
        refusals=(*_WRITE, 409),
    )
    def put(self, request: Request, **path: str) -> HttpResponse:
        """Have it be what the body says, from the next call on; its version is raised.

        What the body leaves out is as in a new target, but for the token, which stays.
        """
        asked = self.arguments(_REPLACE)
        shown = services.replace_target(
            principal=principal_of(request), target_id=asked.pop("targetId"), asked=asked
        )
        return json_response(shown)

    @operation(
        "deleteTarget",
        "Delete a target",
        tag="targets",
        response=_DELETED,
        path=_IN_PATH,
        refusals=_WRITE,
    )
    def delete(self, request: Request, **path: str) -> HttpResponse:
        """Calls that name it fail from now on; the rules of policy about it alone are retired."""
        target_id = self.arguments(_ID)["targetId"]
        return json_response(
            services.delete_target(principal=principal_of(request), target_id=target_id)
        )


class ProbeView(ApiView):
    """POST /targets/{targetId}/probe."""

    scopes = {"POST": services.ADMIN}

    @operation(
        "probeTarget",
        "Ask whether a runner answers",
        tag="targets",
        response=_TARGET,
        path=_IN_PATH,
        examples=_SHOWN,
        refusals=_WRITE,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Asks GET /health beside its endpoint, for five seconds at most. Any HTTP answer counts:
        `lastSeenAt` is now, else `probeError` says why there was none. One that is up is asked
        for `GET /tools`, as long again: `tools` has what it publishes.
        """
        target_id = self.arguments(_ID)["targetId"]
        return json_response(
            services.probe_target(principal=principal_of(request), target_id=target_id)
        )
