"""Test default deny: every route has an entry here with its scopes, or why it is open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from decisions.api.continuity_view import ContinuityView
from decisions.identity.principals import SCOPES
from decisions.rest_base.view import ApiView, PublicView
from tests.support.rest.rest import continuity_refusal, refusal

RUN, ARTIFACT = "api/v1/runs/<id:runId>", "api/v1/artifacts/<id:artifactId>"
SESSION = "api/v1/sessions/<id:sessionId>"
TARGET = "api/v1/targets/<id:targetId>"
HOOK = "api/v1/webhooks/<id:webhookId>"
TASK = "api/v1/tasks/<id:taskId>"
BROWSER = "api/v1/plugin/clients/<id:clientId>"
USER = "api/v1/user/<id:user_id>"
SCOPED: dict[str, dict[str, str]] = {
    "api/v1/templates": {"GET": "runs:read"},
    "api/v1/runs": {"GET": "runs:read", "POST": "runs:write"},
    RUN: {"GET": "runs:read"},
    f"{RUN}/cancel": {"POST": "runs:write"},
    f"{RUN}/retry": {"POST": "runs:write"},
    f"{RUN}/answer": {"POST": "runs:write"},
    f"{RUN}/events": {"GET": "runs:read"},
    f"{RUN}/wait": {"GET": "runs:read"},
    f"{RUN}/artifacts": {"GET": "artifacts:read"},
    f"{RUN}/evidence": {"GET": "audit:read"},
    "api/v1/audit": {"GET": "audit:read"},
    "api/v1/tools": {"GET": "tools:read"},
    "api/v1/tools/<id:name>/call": {"POST": "tools:read"},  # and tools:write, depending on the tool
    "api/v1/targets": {"GET": "tools:read", "POST": "targets:admin"},
    TARGET: {"GET": "tools:read", "PUT": "targets:admin", "DELETE": "targets:admin"},
    f"{TARGET}/probe": {"POST": "targets:admin"},
    "api/v1/webhooks": {"GET": "runs:read", "POST": "runs:write"},
    HOOK: {"GET": "runs:read", "DELETE": "runs:write"},
    f"{HOOK}/enable": {"POST": "runs:write"},
    f"{HOOK}/disable": {"POST": "runs:write"},
    f"{HOOK}/deliveries": {"GET": "runs:read"},
    f"{HOOK}/deliveries/<id:deliveryId>/replay": {"POST": "runs:write"},
    "api/v1/tasks": {"GET": "tasks:read", "POST": "tasks:write"},
    TASK: {"GET": "tasks:read"},
    f"{TASK}/messages": {"POST": "tasks:write"},
    f"{TASK}/stop": {"POST": "tasks:write"},
    f"{TASK}/takeover": {"POST": "tasks:write"},
    f"{TASK}/resume": {"POST": "tasks:write"},
    f"{TASK}/ticket": {"POST": "tasks:read"},
    f"{TASK}/events": {"GET": "tasks:read"},
    "api/v1/plugin/ticket": {"POST": "tasks:write"},
    "api/v1/plugin/clients": {"GET": "tasks:read"},
    BROWSER: {"GET": "tasks:read", "DELETE": "tasks:write"},
    f"{BROWSER}/snapshot": {"GET": "tasks:read"},
    "api/v1/extension/extension-list": {"GET": "tasks:read"},
    "api/v1/runtime/profile": {"GET": "runs:read"},
    "api/v1/page-content": {"POST": "artifacts:read"},
    "api/v1/sessions": {"GET": "sessions:read", "POST": "sessions:write"},
    SESSION: {"GET": "sessions:read", "PATCH": "sessions:write", "DELETE": "sessions:write"},
    f"{SESSION}/clone": {"POST": "sessions:write"},
    ARTIFACT: {"GET": "artifacts:read"},
    f"{ARTIFACT}/content": {"GET": "artifacts:read"},
    "api/v1/artifacts/uploads": {"POST": "artifacts:write"},
    "api/v1/artifacts/uploads/<id:uploadId>/complete": {"POST": "artifacts:write"},
    "api/v1/chat": {"POST": "continuity:write"},
    "api/v1/decision/<id:decision_id>/confirm": {"POST": "continuity:write"},
    "api/v1/decision/<id:decision_id>/outcome": {"POST": "continuity:write"},
    f"{USER}/state": {"GET": "continuity:read"},
    f"{USER}/objects": {"GET": "continuity:read"},
    f"{USER}/objects/shell": {"POST": "continuity:write"},
    f"{USER}/objects/shell/latest": {"GET": "continuity:read"},
    f"{USER}/objects/success-path": {"POST": "continuity:write"},
}
OPEN = {
    "api/v1/artifacts/upload/<id:ticket>": "its ticket is the credential",
    "api/v1/artifacts/file/<id:ticket>": "its ticket is the credential",
    "": "redirects to the admin",
    "healthz": "returns only that the process runs",
    "readyz": "returns only which part is unavailable",
    "readyz/web": "returns only which part is unavailable",
    "metrics": "for callers on this machine; others need a token with metrics:read",
    "api/schema": "the documentation",
    "api/docs": "the documentation",
    "admin": "redirects to the admin",
    "admin/once/<str:token>/": "its token is the credential",
    "confirm/<str:confirmation_id>/<str:signature>": "its signature is the credential",
}
STAFF = "admin/"  # the admin site requires a login itself
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def routes(resolver: URLResolver | None = None, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every route and its view."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield route, pattern.callback
        else:
            yield from routes(pattern, route)


def view_class(view: Any) -> Any:
    return getattr(view, "cls", None)


FOUND = dict(routes())


def test_every_route_has_an_entry_and_every_entry_a_route() -> None:
    routes = {route for route in FOUND if not route.startswith(STAFF) or route in OPEN}
    assert routes == SCOPED.keys() | OPEN.keys()


@pytest.mark.parametrize(("route", "scopes"), SCOPED.items(), ids=list(SCOPED))
def test_a_scoped_route_requires_exactly_these_scopes(route: str, scopes: dict[str, str]) -> None:
    cls = view_class(FOUND[route])
    assert issubclass(cls, ApiView)
    assert not issubclass(cls, PublicView)
    handled = {method for method in METHODS if hasattr(cls, method.lower())} - {"HEAD"}
    assert (cls.scopes, handled) == (scopes, set(scopes))
    assert set(scopes.values()) <= SCOPES


EXAMPLE_IDS = {
    "runId": "run_x",
    "artifactId": "art_x",
    "sessionId": "sess_x",
    "uploadId": "upl_x",
    "webhookId": "hook_x",
    "deliveryId": "dlv_x",
    "targetId": "target_x",
    "taskId": "task_x",
    "clientId": "plc_x",
    "user_id": "alice",
    "decision_id": "1",
}


def address(route: str) -> str:
    for name, example in EXAMPLE_IDS.items():
        route = route.replace(f"<id:{name}>", example)
    return f"/{route}"


@pytest.mark.parametrize("route", SCOPED)
def test_no_method_of_a_scoped_route_answers_without_a_token(
    anonymous: httpx.Client, route: str
) -> None:
    for method in METHODS:
        response = anonymous.request(method, address(route))
        assert response.status_code == 401
        if method == "HEAD":
            continue
        if issubclass(view_class(FOUND[route]), ContinuityView):
            assert continuity_refusal(response, 401)["code"] == "unauthenticated"
        else:
            assert refusal(response, 401)["errorCode"] == "UNAUTHENTICATED"


@pytest.mark.parametrize("route", ["healthz", "readyz", "metrics", "api/schema", "api/docs"])
def test_an_open_route_answers_without_a_token(anonymous: httpx.Client, route: str) -> None:
    assert anonymous.get(f"/{route}").status_code in (200, 503)
    assert anonymous.post(f"/{route}").status_code == 405


def test_the_admin_redirects_anonymous_users_to_its_login(
    anonymous: httpx.Client, principal: object
) -> None:
    for path in ("/admin/", "/admin/runs/run/"):
        response = anonymous.get(path)
        assert response.status_code == 302
        assert response.headers["location"].startswith("/admin/login/")


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/",
        "/api/v1",
        "/api/v1/nothing",
        "/api/v2/runs",
        "/nothing",
        "/api/v1/runs/a/b/c",
        "/healthz/x",
    ],
)
def test_an_unknown_route_is_not_found_in_the_common_error_shape(
    api: httpx.Client, path: str
) -> None:
    assert refusal(api.get(path), 404)["errorCode"] == "NOT_FOUND"
