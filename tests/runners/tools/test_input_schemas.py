"""Every tool's and template's input schema consists of JSON Schema's own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runners.invocation.arguments import input_schema
from runners.tools.registry import list_actions, list_tools
from runs.task_templates.registry import list_templates

# Pydantic's names of limits, which it writes where it does not translate them.
PYDANTIC_WORDS = {"ge", "le", "gt", "lt", "multiple_of", "min_length", "max_length"}
SCHEMAS = {tool.name: input_schema(tool) for tool in (*list_tools(), *list_actions())} | {
    template.template_id: template.inputs_schema for template in list_templates()
}


def words(node: Any) -> Iterator[str]:
    """Yield the keywords of a schema and its parts, without the names of fields."""
    if isinstance(node, list):
        for item in node:
            yield from words(item)
    if isinstance(node, dict):
        for word, value in node.items():
            yield word
            named = word in ("properties", "$defs") and isinstance(value, dict)
            yield from words(list(value.values()) if named else value)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_limits_are_written_in_the_words_of_json_schema(name: str) -> None:
    assert set(words(SCHEMAS[name])) & PYDANTIC_WORDS == set()


def test_the_number_of_a_tab_and_of_an_element_has_its_limits() -> None:
    fields = SCHEMAS["browser_click"]["properties"]
    assert (fields["tabId"]["minimum"], fields["tabId"]["maximum"]) == (0, 2**53 - 1)
    assert fields["clickId"]["anyOf"][0]["minimum"] == 1
