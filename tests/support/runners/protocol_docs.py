"""The part of docs/extension-protocol.md that shows the schemas of the messages.

python -m tests.support.runners.protocol_docs     # writes it
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runners.paired_browser.protocol.messages import FROM_BROWSER
from tests.support.runners.protocol_schemas import PARTS, TO_BROWSER, complete_schema

DOCS = Path(__file__).parents[3] / "docs/extension-protocol.md"
START = "<!-- The schemas: python -m tests.support.runners.protocol_docs -->\n"


def render() -> str:
    """Return the schemas as Markdown."""
    parts = {name: _named(schema, skip=name) for name, schema in PARTS.items()}
    sections = [_block("Parts", {"$defs": parts}, inner="$defs")]
    for sender, schemas in (
        ("The browser", {type_: complete_schema(type_) for type_ in FROM_BROWSER}),
        ("The server", TO_BROWSER),
    ):
        for type_, schema in schemas.items():
            sections.append(_block(f"{sender} sends `{type_}`", _named(schema)))
    return "\n".join(sections)


def _named(schema: Any, skip: str = "") -> Any:
    """Return a schema with references to its named parts."""
    for name, part in PARTS.items():
        if schema == part and name != skip:
            return {"$ref": f"#/$defs/{name}"}
    if isinstance(schema, dict):
        return {key: _named(value) for key, value in schema.items()}
    return [_named(one) for one in schema] if isinstance(schema, list | tuple) else schema


def _block(title: str, schema: dict[str, Any], inner: str = "properties") -> str:
    """Return a heading and the schema, with a line for each property."""
    fields = [f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in schema[inner].items()]
    rest = "".join(
        f"{json.dumps(key)}: {json.dumps(value)},\n "
        for key, value in schema.items()
        if key != inner
    )
    listed = ",\n".join(fields)
    return f'### {title}\n\n```json\n{{{rest}"{inner}": {{\n{listed}\n}}}}\n```\n'


if __name__ == "__main__":
    text = DOCS.read_text()
    DOCS.write_text(text[: text.index(START) + len(START)] + "\n" + render())
