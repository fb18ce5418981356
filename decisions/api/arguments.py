"""A call's arguments as REST brings them: from path, query and body, against one closed schema."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from django.http import HttpRequest, QueryDict

from decisions.errors import BodyTooLarge, InvalidInput, UnsupportedBody
from decisions.validation.json_input import load_json
from decisions.validation.json_schema import check, coerce_integers, compile_schema

_INTEGER = re.compile(r"-?[0-9]{1,19}")


def read_json(request: HttpRequest, *, limit: int) -> Any:
    """Return the JSON value of a call's body through the input gate; no body at all counts as an
    empty object.

    Raises:
        UnsupportedBody: Another content type than application/json, or a content encoding.
        BodyTooLarge, MalformedBody: As the gate says.
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
    """Refuse a body that is packed.

    Raises:
        UnsupportedBody: It has a content encoding.
    """
    if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise UnsupportedBody("A body with a content encoding is not taken.")


def check_content_type(request: HttpRequest) -> None:
    """Refuse a body that is said to be something else than JSON.

    Raises:
        UnsupportedBody: Its content type is not application/json in UTF-8.
    """
    charset = (request.content_params or {}).get("charset", "utf-8")
    if request.content_type != "application/json" or charset.lower() not in ("utf-8", "utf8"):
        told = request.headers.get("Content-Type", "none")[:64]
        raise UnsupportedBody(f"The body has to be application/json in UTF-8, not {told!r}.")


class RequestArguments:
    """The closed input schema of a call, the same that its MCP tool has.

    `in_query` names what a call with a body takes from its query all the same.
    """

    def __init__(self, schema: Mapping[str, Any], *, in_query: Collection[str] = ()) -> None:
        self.schema = dict(schema)
        self._in_query = frozenset(in_query)
        self._validator = compile_schema(self.schema)

    def of_query(self, query: QueryDict, path: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of a call without a body.

        Raises:
            InvalidInput: Unknown, repeated, malformed or out of range.
        """
        return self._checked(self._of_query(query), path)

    def of_body(self, body: Any, query: QueryDict, path: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of a call with a body, a JSON value that passed the gate.

        Raises:
            InvalidInput: No object, a query beside it, or not what the schema allows.
        """
        for name in query:
            if name not in self._in_query:
                raise InvalidInput(f"{name[:64]}: this call takes its arguments in the body.")
        if not isinstance(body, dict):
            raise InvalidInput("The body has to be a JSON object.")
        for name in self._in_query & body.keys():
            raise InvalidInput(f"{name}: it stands in the query.")
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
                raise InvalidInput(f"{name}: it stands in the path already.")
            given[name] = self._typed(name, value)
        check(self._validator, given)
        arguments: dict[str, Any] = coerce_integers(given, self.schema)
        return arguments

    def _typed(self, name: str, text: str) -> Any:
        """Return a path's or query's text as the JSON value that the schema wants there."""
        wanted = self.schema["properties"].get(name, {}).get("type")
        if wanted != "integer":
            return _text(name, text)
        if not _INTEGER.fullmatch(text):
            raise InvalidInput(f"{name}: {text[:32]!r} is not an integer.")
        return int(text)


def _text(name: str, text: str) -> str:
    if "\0" in text:
        raise InvalidInput(f"{name[:64]}: it holds a NUL character.")
    return text
