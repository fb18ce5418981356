"""REST views of targets (S3 §2). Tokens are accepted and never returned."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.foundation.validation.json_schema import page_schema
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import READ_REFUSALS, WRITE_REFUSALS, component, operation
from decisions.rest_base.view import ApiView, json_response, principal_of
from runners.api.schemas import targets as schemas
from runners.targets import services

_TARGET = component("Target", schemas.TARGET)
_LISTED = component("TargetList", page_schema("targets", _TARGET))
_NEW = component("NewTarget", schemas.CREATE_INPUT)
_REPLACED = component("ReplacedTarget", schemas.REPLACE_BODY)
_DELETED = component("DeletedTarget", schemas.DELETED)

_LIST = RequestArguments(schemas.LIST_INPUT)
_CREATE = RequestArguments(schemas.CREATE_INPUT)
_ID = RequestArguments(schemas.ID_INPUT)
_REPLACE = RequestArguments(schemas.REPLACE_INPUT)

_IN_PATH = {"targetId": "From the list of targets."}
_EXAMPLES = {200: schemas.EXAMPLE}


class TargetsView(ApiView):
    """GET and POST /targets."""

    scopes = {"GET": services.READ, "POST": services.ADMIN}

    @operation(
        "listTargets",
        "List targets",
        tag="targets",
        response=_LISTED,
        arguments=_LIST,
        refusals=(400, 401, 403, 429),
    )
    def get(self, request: Request) -> HttpResponse:
        """The targets that a call may name, newest first; the next page starts at `offset` =
        `nextCursor`.
        """
        fields = self.arguments(_LIST)
        return json_response(services.list_targets(principal=principal_of(request), **fields))

    @operation(
        "createTarget",
        "Create a target",
        tag="targets",
        response=_TARGET,
        status=201,
        body=_NEW,
        body_example=schemas.NEW_EXAMPLE,
        examples={201: schemas.EXAMPLE},
        refusals=(400, 401, 403, 409, 413, 415, 429),
    )
    def post(self, request: Request) -> HttpResponse:
        """Create a target in the token's workspace. Its tools are denied until a policy rule allows
        them.
        """
        fields = self.arguments(_CREATE)
        created = services.create_target(principal=principal_of(request), fields=fields)
        headers = {"Location": f"/api/v1/targets/{created['targetId']}"}
        return json_response(created, status=HTTPStatus.CREATED, headers=headers)


class TargetView(ApiView):
    """GET, PUT and DELETE /targets/{targetId}."""

    scopes = {"GET": services.READ, "PUT": services.ADMIN, "DELETE": services.ADMIN}

    @operation(
        "getTarget",
        "One target",
        tag="targets",
        response=_TARGET,
        path=_IN_PATH,
        examples=_EXAMPLES,
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Return the target with its version and when it was last seen, never its token."""
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
        examples=_EXAMPLES,
        refusals=(*WRITE_REFUSALS, 409),
    )
    def put(self, request: Request, **path: str) -> HttpResponse:
        """Replace the target from the next call on; its version is incremented.

        Omitted fields get the defaults of a new target, except the token, which is kept.
        """
        fields = self.arguments(_REPLACE)
        replaced = services.replace_target(
            principal=principal_of(request), target_id=fields.pop("targetId"), fields=fields
        )
        return json_response(replaced)

    @operation(
        "deleteTarget",
        "Delete a target",
        tag="targets",
        response=_DELETED,
        path=_IN_PATH,
        refusals=WRITE_REFUSALS,
    )
    def delete(self, request: Request, **path: str) -> HttpResponse:
        """Calls that name it fail from now on; the policy rules for it alone are retired."""
        target_id = self.arguments(_ID)["targetId"]
        return json_response(
            services.delete_target(principal=principal_of(request), target_id=target_id)
        )


class ProbeView(ApiView):
    """POST /targets/{targetId}/probe."""

    scopes = {"POST": services.ADMIN}

    @operation(
        "probeTarget",
        "Probe a runner",
        tag="targets",
        response=_TARGET,
        path=_IN_PATH,
        examples=_EXAMPLES,
        refusals=WRITE_REFUSALS,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Send GET /health to the runner, for at most five seconds. Any HTTP response sets
        `lastSeenAt`; otherwise `probeError` is the reason. A runner that answers is sent
        GET /tools, with the same limit: `tools` has the tools that it publishes.
        """
        target_id = self.arguments(_ID)["targetId"]
        return json_response(
            services.probe_target(principal=principal_of(request), target_id=target_id)
        )
