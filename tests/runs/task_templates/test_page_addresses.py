"""An address without a scheme is refused at submit, not as a failed run."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.rest.rest import refusal

INPUTS: list[tuple[str, dict[str, Any]]] = [
    ("agent_task", {"goal": "Read the page.", "startUrl": "example.com/a"}),
    ("multi_tab_compare", {"urls": ["https://example.com/", "www.example.com"]}),
]


@pytest.mark.parametrize(("template", "inputs"), INPUTS, ids=[name for name, _ in INPUTS])
def test_an_address_without_a_scheme_is_refused_at_submit(
    api: httpx.Client, template: str, inputs: dict[str, Any]
) -> None:
    answer = api.post("/api/v1/runs", json={"templateId": template, "inputs": inputs})
    assert "write https:// or http://" in refusal(answer, 400)["message"]
    assert api.get("/api/v1/runs").json()["runs"] == []
