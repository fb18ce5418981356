"""Test the messages of paired browsers: what is read, what is refused, what the docs show."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from decisions.foundation.errors import InvalidInput
from runners.paired_browser.protocol.messages import FROM_BROWSER, id_of, read_message
from tests.support.runners.protocol_docs import DOCS, START, render

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_KNOWN = sorted({name for schema in FROM_BROWSER.values() for name in schema["properties"]})
_FIELDS = st.dictionaries(st.sampled_from([*_KNOWN, "extra"]), _JSON, max_size=6)


@given(type_=st.sampled_from([*FROM_BROWSER, "x"]), fields=_FIELDS, text=st.text(max_size=20))
def test_a_message_is_read_or_refused_as_invalid(
    type_: str, fields: dict[str, object], text: str
) -> None:
    for raw in (json.dumps({"v": 1, "id": "x", **fields, "type": type_}), text):
        assert id_of(raw) is None or isinstance(id_of(raw), str)
        try:
            message = read_message(raw)
        except InvalidInput:
            continue
        assert message["type"] in FROM_BROWSER


def test_the_docs_show_the_schemas_of_all_messages() -> None:
    _, _, shown = DOCS.read_text().partition(START)
    assert shown == "\n" + render(), "python -m tests.support.runners.protocol_docs"
