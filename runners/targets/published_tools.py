"""The tools that runners offer: names, descriptions and schemas, checked and limited in size.

Invalid parts of a runner's published list are left out, and an unusable schema becomes any object.
Invalid parts of a target's config, written by an operator, are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from decisions.foundation.errors import InvalidInput, Refused
from decisions.foundation.validation.foreign_schema import ForeignSchema
from decisions.foundation.validation.json_input import load_json
from decisions.foundation.validation.json_schema import without_titles
from decisions.foundation.validation.storable import storable, storable_text
from runners.gateway.request import CATALOGUE_MAX_BYTES

MAX_OFFERS = 200
NAME_MAX = 128  # the limit of tool names in calls
DESCRIPTION_MAX = 2000
SCHEMA_MAX_BYTES = 16 * 1024
_SCHEMA_MAX_DEPTH = 20
_RISKS = frozenset({"low", "medium", "high"})
# Not needed in a single schema; $id would also change where references resolve.
_OMITTED_KEYWORDS = frozenset({"$schema", "$id", "title"})

ToolOffer = dict[str, Any]


def any_object() -> dict[str, Any]:
    """Return the schema of a tool without a usable one."""
    return {"type": "object"}


def parse_published_tools(body: bytes) -> list[ToolOffer]:
    """Parse a runner's list of tools; return the valid ones in its order.

    Raises:
        InvalidInput: The body is not a list of tools.
    """
    try:
        published = load_json(body, limit=CATALOGUE_MAX_BYTES)
    except Refused as refused:
        raise InvalidInput(f"Its list of tools is not valid JSON: {refused.message}") from None
    listed = published.get("tools") if isinstance(published, dict) else published
    if not isinstance(listed, list):
        raise InvalidInput("It did not answer with a list of tools.")
    found: dict[str, ToolOffer] = {}
    for one in listed[:MAX_OFFERS]:
        offer = _offer(one)
        if offer is not None:
            found.setdefault(offer["name"], offer)
    return list(found.values())


def check_configured_tools(listed: Any) -> None:
    """Refuse an invalid `config.tools`.

    Raises:
        InvalidInput: The message names the path of the invalid part.
    """
    if not isinstance(listed, list) or len(listed) > MAX_OFFERS:
        raise InvalidInput(f"config.tools: must be a list of at most {MAX_OFFERS} tools.")
    names = set()
    for index, one in enumerate(listed):
        offer, path = _offer(one), f"config.tools.{index}"
        if offer is None:
            raise InvalidInput(
                f"{path}: must be an object with a name of 1 to {NAME_MAX} printable characters."
            )
        if not isinstance(one.get("description", ""), str):
            raise InvalidInput(f"{path}.description: must be a string.")
        if "inputSchema" in one and usable_schema(one["inputSchema"]) is None:
            raise InvalidInput(
                f"{path}.inputSchema: must be a JSON Schema of an object, of at most"
                f" {SCHEMA_MAX_BYTES} bytes, without references to other documents, that does not"
                " expand to too many subschemas."
            )
        if offer["name"] in names:
            raise InvalidInput(f"{path}.name: {offer['name'][:64]} occurs twice.")
        names.add(offer["name"])


def configured_tools(config: Mapping[str, Any]) -> list[ToolOffer]:
    """Return the tools that a target's config lists."""
    listed = config.get("tools")
    if not isinstance(listed, list):  # stored before the config was validated
        return []
    return [offer for one in listed[:MAX_OFFERS] if (offer := _offer(one)) is not None]


def usable_schema(raw: Any) -> dict[str, Any] | None:
    """Return a schema of arguments in the form that is stored, or None if it is unusable."""
    if not isinstance(raw, dict) or raw.get("type", "object") != "object":
        return None
    if _depth(raw) > _SCHEMA_MAX_DEPTH:
        return None
    schema = {
        name: part
        for name, part in without_titles(storable(raw)).items()
        if name not in _OMITTED_KEYWORDS
    }
    schema["type"] = "object"
    if len(orjson.dumps(schema)) > SCHEMA_MAX_BYTES:
        return None
    try:
        ForeignSchema(schema)  # refuses references out of the schema, which some hosts fetch
    except ValueError:
        return None
    return schema


def _offer(one: Any) -> ToolOffer | None:
    if not isinstance(one, dict):
        return None
    name = one.get("name")
    if not isinstance(name, str) or not 1 <= len(name) <= NAME_MAX or not name.isprintable():
        return None
    if name.strip() != name or name == "*":
        return None
    description = one.get("description")
    offer: ToolOffer = {
        "name": name,
        "description": _short(description) if isinstance(description, str) else "",
        "inputSchema": usable_schema(one.get("inputSchema")) or any_object(),
    }
    if one.get("risk") in _RISKS:
        offer["risk"] = one["risk"]
    return offer


def _short(text: str) -> str:
    plain = " ".join(storable_text(text).split())
    return plain if len(plain) <= DESCRIPTION_MAX else plain[: DESCRIPTION_MAX - 1] + "…"


def _depth(node: Any, depth: int = 0) -> int:
    if depth > _SCHEMA_MAX_DEPTH:
        return depth
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return max((_depth(part, depth + 1) for part in parts), default=depth)
