"""The OpenAPI document: complete, valid, and in agreement with the routes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from drf_spectacular.validation import validate_schema

from config.schema import document
from decisions.foundation.errors import NotAuthenticated
from decisions.foundation.validation.json_schema import compile_schema
from runners.invocation.workspace_errors import STATUS, as_workspace_error, failed_call

PATHS_WITHOUT_TOKEN = {
    "/healthz",
    "/readyz",
    "/readyz/web",
    "/api/v1/artifacts/upload/{ticket}",
    "/api/v1/artifacts/file/{ticket}",
}


@pytest.fixture(scope="module")
def api_document() -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(document())
    return parsed


def operations(api_document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in api_document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from nodes(item)


def test_the_document_is_valid_openapi(api_document: dict[str, Any]) -> None:
    assert api_document["openapi"].startswith("3.1")
    validate_schema(api_document)  # type: ignore[no-untyped-call]


def test_every_reference_resolves(api_document: dict[str, Any]) -> None:
    for node in nodes(api_document):
        if "$ref" in node:
            kind, name = node["$ref"].split("/")[-2:]
            assert name in api_document["components"][kind]


def test_every_call_is_described_once_with_its_security(api_document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(api_document)]
    assert len(names) == len(set(names)) == 69
    for path, _, operation in operations(api_document):
        assert operation["description"]
        assert operation["summary"]
        assert operation.get("security", [{}]) == (
            [{}] if path in PATHS_WITHOUT_TOKEN else [{"token": []}]
        )


def test_every_guarded_call_documents_its_refusals_with_an_example(
    api_document: dict[str, Any],
) -> None:
    for path, _, operation in operations(api_document):
        if path not in PATHS_WITHOUT_TOKEN:
            assert {"401", "403", "429"} <= operation["responses"].keys()
            content = operation["responses"]["401"]["content"]["application/json"]
            answer = content["examples"]["Example"]["value"]
            if operation["tags"] == ["continuity"]:
                assert answer["code"] == "unauthenticated"
            else:
                assert answer["errorCode"] == "UNAUTHENTICATED"


def test_every_example_is_valid_by_its_schema(api_document: dict[str, Any]) -> None:
    checked = 0
    for node in nodes(api_document["paths"]):
        for example in node.get("examples", {}).values() if "schema" in node else ():
            with_components = {**node["schema"], "components": api_document["components"]}
            assert compile_schema(with_components).is_valid(example["value"]), example
            checked += 1
    assert checked > 50


@pytest.mark.parametrize("in_s4", [False, True])
def test_a_tool_call_documents_both_error_shapes_at_every_status(
    api_document: dict[str, Any], in_s4: bool
) -> None:
    responses = api_document["paths"]["/api/v1/tools/{name}/call"]["post"]["responses"]
    errors = {status: answer for status, answer in responses.items() if status != "200"}
    assert {str(status) for status in STATUS.values()} < errors.keys()
    failed = failed_call({"errorCode": "E_IO", "message": "no", "details": {}}, in_s4=True)
    content = as_workspace_error(failed) if in_s4 else NotAuthenticated("no").as_dict()
    for answer in errors.values():
        schema = answer["content"]["application/json"]["schema"]
        with_components = compile_schema({**schema, "components": api_document["components"]})
        assert with_components.is_valid(content)
        assert not with_components.is_valid({"ok": False})


def test_a_path_has_the_parameter_names_of_the_contract(api_document: dict[str, Any]) -> None:
    events = api_document["paths"]["/api/v1/runs/{runId}/events"]["get"]
    found = {(parameter["in"], parameter["name"]) for parameter in events["parameters"]}
    assert found == {("path", "runId"), *(("query", n) for n in ("after", "waitMs", "limit"))}
    assert "text/event-stream" in events["responses"]["200"]["content"]


def test_each_parameter_has_a_description_and_the_document_names_its_server() -> None:
    schema = json.loads(document())
    calls = [call for path in schema["paths"].values() for call in path.values()]
    parameters = [one for call in calls for one in call.get("parameters", [])]
    assert [one["name"] for one in parameters if not one.get("description")] == []
    assert schema["servers"] == [{"url": "/"}]
