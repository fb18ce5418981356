"""What runners say that they offer, made fit for every door: names, descriptions, schemas.

What a foreign runner says is bounded, and what of it no door could show is left out or becomes any
object; what an operator writes into a target's config is refused instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from decisions.errors import InvalidInput, Refused
from decisions.validation.json_input import load_json
from decisions.validation.json_schema import compile_schema, without_titles
from decisions.validation.storable import storable, storable_text
from runners.gateway.request import CATALOGUE_MAX_BYTES

MAX_OFFERS = 200
NAME_MAX = 128  # as calls may name tools
DESCRIPTION_MAX = 2000
SCHEMA_MAX_BYTES = 16 * 1024
_SCHEMA_MAX_DEPTH = 20
_RISKS = frozenset({"low", "medium", "high"})
# Of no use to who reads one schema alone, and base addresses would lead references elsewhere.
_LEFT_OUT = frozenset({"$schema", "$id", "title"})

Offer = dict[str, Any]


def any_object() -> dict[str, Any]:
    """Return the schema of a tool of which no better one is known."""
    return {"type": "object"}


def published_offers(body: bytes) -> list[Offer]:
    """Return the tools of a runner's own list, in its order: those that can be offered.

    Raises:
        InvalidInput: It is no list of tools.
    """
    try:
        told = load_json(body, limit=CATALOGUE_MAX_BYTES)
    except Refused as refused:
        raise InvalidInput(
            f"Its list of tools is no JSON that is taken: {refused.message}"
        ) from None
    listed = told.get("tools") if isinstance(told, dict) else told
    if not isinstance(listed, list):
        raise InvalidInput("It answered with something else than a list of tools.")
    found: dict[str, Offer] = {}
    for one in listed[:MAX_OFFERS]:
        offer = _offer(one)
        if offer is not None:
            found.setdefault(offer["name"], offer)
    return list(found.values())


def check_named_offers(listed: Any) -> None:
    """Refuse a `config.tools` that says something else than which tools a runner offers.

    Raises:
        InvalidInput: The message names the place.
    """
    if not isinstance(listed, list) or len(listed) > MAX_OFFERS:
        raise InvalidInput(f"config.tools: a list of at most {MAX_OFFERS} tools.")
    names = set()
    for index, one in enumerate(listed):
        offer, where = _offer(one), f"config.tools.{index}"
        if offer is None:
            raise InvalidInput(
                f"{where}: an object with a name of 1 to {NAME_MAX} printable characters."
            )
        if not isinstance(one.get("description", ""), str):
            raise InvalidInput(f"{where}.description: a text.")
        if "inputSchema" in one and usable_schema(one["inputSchema"]) is None:
            raise InvalidInput(
                f"{where}.inputSchema: a JSON Schema of an object, of at most {SCHEMA_MAX_BYTES}"
                " bytes, that refers to nothing outside of it."
            )
        if offer["name"] in names:
            raise InvalidInput(f"{where}.name: {offer['name'][:64]} is named twice.")
        names.add(offer["name"])


def named_offers(config: Mapping[str, Any]) -> list[Offer]:
    """Return the tools that a target's config names."""
    listed = config.get("tools")
    if not isinstance(listed, list):  # written before anybody looked at it
        return []
    return [offer for one in listed[:MAX_OFFERS] if (offer := _offer(one)) is not None]


def usable_schema(raw: Any) -> dict[str, Any] | None:
    """Return a schema of arguments as it is kept, or None where no caller could use it."""
    if not isinstance(raw, dict) or raw.get("type", "object") != "object":
        return None
    if _depth(raw) > _SCHEMA_MAX_DEPTH or not _keeps_to_itself(raw):
        return None
    schema = {
        name: part for name, part in without_titles(storable(raw)).items() if name not in _LEFT_OUT
    }
    schema["type"] = "object"
    if len(orjson.dumps(schema)) > SCHEMA_MAX_BYTES:
        return None
    try:
        compile_schema(schema)
    except ValueError:
        return None
    return schema


def _offer(one: Any) -> Offer | None:
    if not isinstance(one, dict):
        return None
    name = one.get("name")
    if not isinstance(name, str) or not 1 <= len(name) <= NAME_MAX or not name.isprintable():
        return None
    if name.strip() != name or name == "*":
        return None
    described = one.get("description")
    offer: Offer = {
        "name": name,
        "description": _short(described) if isinstance(described, str) else "",
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


def _keeps_to_itself(node: Any) -> bool:
    """Tell whether every reference stays within the schema: hosts follow some by themselves."""
    if isinstance(node, list):
        return all(map(_keeps_to_itself, node))
    if not isinstance(node, dict):
        return True
    for name, part in node.items():
        is_reference = name in ("$ref", "$dynamicRef") and isinstance(part, str)
        if is_reference and not part.startswith("#"):
            return False
    return all(map(_keeps_to_itself, node.values()))
