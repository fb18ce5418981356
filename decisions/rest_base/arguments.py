"""Arguments of a REST call from path, query and body, validated against one closed JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from django.http import HttpRequest, QueryDict

from decisions.foundation.errors import BodyTooLarge, InvalidInput, UnsupportedBody
from decisions.foundation.validation.json_input import load_json
from decisions.foundation.validation.json_schema import check, coerce_integers, compile_schema

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_BOOLEANS = {"true": True, "false": False}


def read_json(request: HttpRequest, *, limit: int) -> Any:
    """Return the request body as a validated JSON value; an empty body counts as `{}`.

    Raises:
        UnsupportedBody: The content type is not application/json, or there is a content encoding.
        BodyTooLarge, MalformedBody: As `load_json`.
    """
    check_encoding(request)
    raw = request.read(limit + 1)
    if not raw:
        return {}
    check_content_type(request)
    if len(raw) > limit:
        raise BodyTooLarge(f"The body has more than {limit} bytes.")
    return load_json(raw, limit=limit)


def check_encoding(request: HttpRequest) -> None:
    """Refuse a compressed body.

    Raises:
        UnsupportedBody: The request has a Content-Encoding other than identity.
    """
    if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise UnsupportedBody("A body with a Content-Encoding is not accepted; send it plain.")


def check_content_type(request: HttpRequest) -> None:
    """Refuse a body of another media type than JSON in UTF-8.

    Raises:
        UnsupportedBody: The content type is not application/json in UTF-8.
    """
    charset = (request.content_params or {}).get("charset", "utf-8")
    if request.content_type != "application/json" or charset.lower() not in ("utf-8", "utf8"):
        content_type = request.headers.get("Content-Type", "none")[:64]
        raise UnsupportedBody(
            f"The body has to be application/json in UTF-8, not {content_type!r}."
        )


class RequestArguments:
    """The arguments of one REST call, by the closed input schema that its MCP tool also has.

    Args:
        in_query: arguments that a call with a body takes from its query instead.
    """

    def __init__(self, schema: Mapping[str, Any], *, in_query: Collection[str] = ()) -> None:
        self.schema = dict(schema)
        self._in_query = frozenset(in_query)
        self._validator = compile_schema(self.schema)

    def of_query(self, query: QueryDict, path: Mapping[str, str]) -> dict[str, Any]:
        """Return the validated arguments of a call without a body.

        Raises:
            InvalidInput: An argument is unknown, repeated, malformed or out of range.
        """
        return self._checked(self._of_query(query), path)

    def of_body(self, body: Any, query: QueryDict, path: Mapping[str, str]) -> dict[str, Any]:
        """Return the validated arguments of a call with a body (from `read_json`).

        Raises:
            InvalidInput: The body is not an object, the query has arguments that belong in the
                body, or the schema does not allow the arguments.
        """
        for name in query:
            if name not in self._in_query:
                raise InvalidInput(f"{name[:64]}: this call takes its arguments in the body.")
        if not isinstance(body, dict):
            raise InvalidInput("The body has to be a JSON object.")
        for name in self._in_query & body.keys():
            raise InvalidInput(f"{name}: send it in the query, not in the body.")
        return self._checked({**body, **self._of_query(query)}, path)

    def _of_query(self, query: QueryDict) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for name, values in query.lists():
            if len(values) > 1:
                raise InvalidInput(f"{name[:64]}: given {len(values)} times; give it once.")
            given[name] = self._typed(name, str(values[0]))
        return given

    def _checked(self, given: dict[str, Any], path: Mapping[str, str]) -> dict[str, Any]:
        for name, value in path.items():
            if name in given:
                raise InvalidInput(f"{name}: it is in the path already; send it there alone.")
            given[name] = self._typed(name, value)
        check(self._validator, given)
        arguments: dict[str, Any] = coerce_integers(given, self.schema)
        return arguments

    def _typed(self, name: str, text: str) -> Any:
        """Convert text from the path or query to the JSON type that the schema expects."""
        wanted = self.schema["properties"].get(name, {}).get("type")
        if wanted == "boolean" and text in _BOOLEANS:
            return _BOOLEANS[text]
        if wanted != "integer":
            return _text(name, text)
        if not _INTEGER.fullmatch(text):
            raise InvalidInput(f"{name}: {text[:32]!r} is not an integer.")
        return int(text)


def _text(name: str, text: str) -> str:
    if "\0" in text:
        raise InvalidInput(f"{name[:64]}: it contains a NUL character.")
    return text
