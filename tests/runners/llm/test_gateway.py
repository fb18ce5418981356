"""Streamed model turns through the gateway for both providers, and how they fail."""

from __future__ import annotations

import asyncio
import email.utils
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from runners.errors import ModelFailed, ModelRefused, ModelUnavailable, ToolFailed
from runners.llm.base import (
    Delta,
    Done,
    Image,
    LlmCall,
    LlmSettings,
    Message,
    Part,
    Price,
    ToolSpec,
)
from runners.llm.gateway import Gateway
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn

KEY = "sk-a-very-secret-key-of-a-test"
TOOLS = [ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {}})]
HELLO = [Message("system", "Be brief."), Message("user", "Hello")]
CALL_MADE = [
    *HELLO,
    Message("assistant", "", [LlmCall("c1", "read_file", {"path": "a"})]),
    Message("tool", "{}", (), "c1"),
]
PICTURE = Image(b"\x89PN", "image/png")


@pytest.fixture(params=["openai", "anthropic"])
def settings(request: pytest.FixtureRequest, model: ModelServer) -> LlmSettings:
    """Return settings that point to the scripted model server."""
    path = "/v1" if request.param == "openai" else ""
    return LlmSettings(request.param, "scripted", model.url + path, KEY, price=Price(2.0, 10.0))


def receive_parts(
    settings: LlmSettings,
    messages: list[Message] | None = None,
    *,
    timeout_ms: int = 60_000,
    only_tool: str = "",
) -> list[Part]:
    """Return all parts that the gateway yields for one turn."""

    async def stream() -> list[Part]:
        gateway = Gateway(settings)
        try:
            return [
                part
                async for part in gateway.stream_chat(
                    messages=messages or HELLO,
                    tools=TOOLS,
                    timeout_ms=timeout_ms,
                    only_tool=only_tool,
                )
            ]
        finally:
            await gateway.close()

    return asyncio.run(stream())


def final_part(parts: list[Part]) -> Done:
    """Return the final part of a turn."""
    assert isinstance(parts[-1], Done)
    return parts[-1]


def test_text_arrives_in_deltas_that_add_up_to_the_content(
    model: ModelServer, settings: LlmSettings
) -> None:
    model.script = [Turn("Good day, 你好 🙂, and so on.")]
    parts = receive_parts(settings)
    pieces = [part.content for part in parts if isinstance(part, Delta)]
    assert len(pieces) > 3
    assert "".join(pieces) == final_part(parts).content == "Good day, 你好 🙂, and so on."
    assert final_part(parts).stop == "stop"


def test_tool_calls_arrive_complete_after_the_text(
    model: ModelServer, settings: LlmSettings
) -> None:
    model.script = [Turn("So:", [Call("read_file", {"path": "ü", "n": 1.5}), Call("list_files")])]
    calls = [part for part in receive_parts(settings) if isinstance(part, LlmCall)]
    assert [(call.name, call.arguments, call.problem) for call in calls] == [
        ("read_file", {"path": "ü", "n": 1.5}, ""),
        ("list_files", {}, ""),
    ]
    assert len({call.tool_call_id for call in calls}) == 2


def test_the_request_holds_the_conversation_and_the_tools_but_not_the_key_in_its_body(
    model: ModelServer, settings: LlmSettings
) -> None:
    model.script = [Turn("fine")]
    call = LlmCall("c1", "read_file", {"path": "a"})
    receive_parts(
        settings, [*HELLO, Message("assistant", "", [call]), Message("tool", "{}", (), "c1")]
    )
    body = str(model.requests[0].body)
    assert model.requests[0].tools == ["read_file"]
    assert all(word in body for word in ("Be brief.", "Hello", "c1", "'scripted'"))
    assert KEY in str(model.requests[0].headers)
    assert KEY not in body


def test_usage_and_cost_are_reported(model: ModelServer, settings: LlmSettings) -> None:
    model.script = [Turn("x", tokens=(1000, 200))]
    usage = final_part(receive_parts(settings)).usage
    assert (usage.input_tokens, usage.output_tokens) == (1000, 200)
    assert usage.cost_usd == pytest.approx(0.004)


def test_cached_tokens_are_counted_and_cost_their_own_price(
    model: ModelServer, settings: LlmSettings
) -> None:
    written = 100 if settings.provider == "anthropic" else 0
    model.script = [Turn("x", tokens=(1000, 0), cached=(600, written))]
    usage = final_part(receive_parts(replace(settings, price=Price(2.0, 10.0, 0.2, 2.5)))).usage
    assert (usage.input_tokens, usage.cache_read_tokens) == (1000, 600)
    assert usage.cache_write_tokens == written
    plain = 400 - written
    assert usage.cost_usd == pytest.approx((plain * 2 + 600 * 0.2 + written * 2.5) / 1_000_000)


def test_the_model_can_be_restricted_to_one_tool(model: ModelServer, settings: LlmSettings) -> None:
    model.script = [Turn("fine")]
    receive_parts(settings, only_tool="read_file")
    choice = {
        "openai": {"type": "function", "function": {"name": "read_file"}},
        "anthropic": {"type": "tool", "name": "read_file"},
    }
    assert model.requests[0].body["tool_choice"] == choice[settings.provider]
    assert model.requests[0].tools == ["read_file"]


def test_a_picture_follows_the_results_of_the_tools(
    model: ModelServer, settings: LlmSettings
) -> None:
    model.script = [Turn("seen")]
    page = Message("user", "The page", images=[PICTURE], is_temporary=True)
    receive_parts(settings, [*CALL_MADE, page])
    messages = model.requests[0].body["messages"]
    if settings.provider == "openai":
        text, picture = messages[-1]["content"]
        assert (messages[-2]["role"], messages[-1]["role"]) == ("tool", "user")
        assert text == {"type": "text", "text": "The page"}
        assert picture["image_url"] == {"url": "data:image/png;base64,iVBO"}
    else:
        result, text = messages[-1]["content"]
        assert [part["type"] for part in result["content"]] == ["text", "image"]
        source = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
        assert result["content"][1]["source"] == source
        assert text == {"type": "text", "text": "The page"}


@pytest.mark.parametrize("images", [(), (PICTURE,)])
def test_the_prompt_cache_of_anthropic_ends_before_what_the_next_request_replaces(
    model: ModelServer, images: tuple[Image, ...]
) -> None:
    model.script = [Turn("fine")]
    second = LlmCall("c2", "read_file", {"path": "b"})
    messages = [
        *CALL_MADE,
        Message("assistant", "", [second]),
        Message("tool", "{}", (), "c2"),
        Message("user", "The page", images=images, is_temporary=True),
    ]
    receive_parts(LlmSettings("anthropic", "scripted", model.url, KEY), messages)
    body = model.requests[0].body
    assert body["tools"][-1]["cache_control"] == {"type": "ephemeral"}
    blocks = [block for message in body["messages"] for block in message["content"]]
    cached = [n for n, block in enumerate(blocks) if "cache_control" in block]
    # Hello, call c1, its result, call c2, its result, the page. A picture is in the last result.
    assert [block["type"] for block in blocks][1:5] == ["tool_use", "tool_result"] * 2
    assert cached == ([2, 3] if images else [2, 4])


def test_without_a_price_the_cost_is_none(model: ModelServer) -> None:
    model.script = [Turn("x", reports_usage=False)]
    usage = final_part(receive_parts(LlmSettings("openai", "scripted", f"{model.url}/v1"))).usage
    assert usage.cost_usd is None
    assert usage.is_estimated
    assert usage.input_tokens > 0 < usage.output_tokens


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        ("{bad", "not valid JSON"),
        ("[1]", "not a JSON object"),
        ('{"a": NaN}', "not valid JSON"),
        ('{"a":' * 40 + "1" + "}" * 40, "deeper"),
        ('{"a": "\\ud800"}', "not valid JSON"),
    ],
)
def test_invalid_arguments_are_reported_and_replaced_by_an_empty_object(
    model: ModelServer, settings: LlmSettings, arguments: str, body: str
) -> None:
    model.script = [Turn("", [Call("read_file", arguments)])]
    calls = [part for part in receive_parts(settings) if isinstance(part, LlmCall)]
    assert [(call.arguments, body in call.problem) for call in calls] == [({}, True)]


def test_the_second_of_two_calls_with_the_same_id_is_rejected(
    model: ModelServer, settings: LlmSettings
) -> None:
    model.script = [Turn("", [Call("read_file", {"a": 1}, "x"), Call("read_file", {"a": 1}, "x")])]
    first, second = [part for part in receive_parts(settings) if isinstance(part, LlmCall)]
    assert (first.tool_call_id, first.problem) == ("x", "")
    assert second.tool_call_id != "x"
    assert "not made" in second.problem


def test_a_reply_over_the_token_limit_stops_with_length(
    model: ModelServer, settings: LlmSettings
) -> None:
    stop = "length" if settings.provider == "openai" else "max_tokens"
    model.script = [Turn("", [Call("read_file", {"a": 1})], stop=stop)]
    assert final_part(receive_parts(settings)).stop == "length"


@pytest.mark.parametrize("cleanly", [True, False])
def test_a_stream_cut_twice_fails(model: ModelServer, settings: LlmSettings, cleanly: bool) -> None:
    model.script = [Turn("abcdefghij", cut_at=300, cut_cleanly=cleanly)] * 3
    with pytest.raises(ModelFailed) as raised:
        receive_parts(settings)
    assert raised.value.code == "LLM_STREAM_FAILED"
    assert raised.value.retryable
    assert len(model.requests) == 2


def test_a_stream_with_invalid_json_is_requested_once_more(
    model: ModelServer, settings: LlmSettings
) -> None:
    model.script = [Turn("", [Call("read_file", {"a": 1})], junk='{"nope": '), Turn("whole")]
    assert final_part(receive_parts(settings)).content == "whole"


@pytest.mark.parametrize(
    "junk",
    [
        '{"choices": 5}',
        '{"choices": [null]}',
        '"text"',
        "[]",
        "17",
        '{"type": "content_block_delta", "delta": null}',
    ],
)
def test_a_stream_with_unexpected_events_ends_in_a_reply_or_model_failed(
    model: ModelServer, settings: LlmSettings, junk: str
) -> None:
    model.script = [Turn("x", junk=junk)] * 2
    with suppress(ModelFailed):  # the only failure allowed is that of a stream cut twice
        assert final_part(receive_parts(settings)).content == "x"


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_busy_server_is_retried_after_its_retry_after_delay(
    model: ModelServer, settings: LlmSettings, status: int
) -> None:
    model.script = [Turn(status=status, headers={"Retry-After": "0.2"})] * 2 + [Turn("at last")]
    started = time.monotonic()
    assert final_part(receive_parts(settings)).content == "at last"
    assert time.monotonic() - started >= 0.4


def test_a_retry_after_date_is_understood(model: ModelServer, settings: LlmSettings) -> None:
    later = email.utils.formatdate(time.time() + 3600, usegmt=True)
    model.script = [Turn(status=429, headers={"Retry-After": later}), Turn("never asked for")]
    with pytest.raises(ModelFailed) as raised:
        receive_parts(settings)
    assert 3_000_000 < raised.value.details["retryAfterMs"] < 4_000_000
    assert len(model.requests) == 1


def test_a_server_that_stays_busy_fails_after_four_attempts(
    model: ModelServer, settings: LlmSettings
) -> None:
    model.script = [Turn(status=503, headers={"Retry-After": "0"})] * 9
    with pytest.raises(ModelFailed) as raised:
        receive_parts(settings)
    assert raised.value.details["status"] == 503
    assert len(model.requests) == 4


def test_a_stalled_stream_ends_at_its_timeout(model: ModelServer, settings: LlmSettings) -> None:
    model.script = [Turn("abc", stall_at=10)]
    with pytest.raises(ModelFailed) as raised:
        receive_parts(settings, timeout_ms=500)
    assert raised.value.details["timedOut"] is True
    assert model.requests[0].disconnected.wait(60)


@pytest.mark.parametrize("status", [401, 403])
def test_the_error_for_a_rejected_key_does_not_contain_the_key(
    model: ModelServer, settings: LlmSettings, status: int
) -> None:
    model.script = [Turn(status=status, body=f'{{"error": {{"message": "bad key {KEY}"}}}}')]
    with pytest.raises(ModelUnavailable) as raised:
        receive_parts(settings)
    assert "CONTINUITY_LLM_API_KEY" in raised.value.message
    assert KEY not in str(raised.value.as_dict())


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_the_server_rejects_is_not_retried(
    model: ModelServer, settings: LlmSettings, status: int
) -> None:
    model.script = [Turn(status=status, body=f'{{"error": {{"message": "no, {KEY}"}}}}')] * 3
    with pytest.raises(ModelRefused) as raised:
        receive_parts(settings)
    assert not raised.value.retryable
    assert KEY not in str(raised.value.as_dict())
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "changed",
    [{"model": ""}, {"base_url": "http://127.0.0.1:9/v1"}, {"base_url": "http://no.invalid/v1"}],
)
def test_a_missing_or_unreachable_model_fails_with_model_unavailable(
    model: ModelServer, settings: LlmSettings, changed: dict[str, Any]
) -> None:
    values = {"provider": settings.provider, "model": "m", "base_url": settings.base_url, **changed}
    with pytest.raises(ModelUnavailable) as raised:
        receive_parts(LlmSettings(**values))
    assert raised.value.code == "MODEL_UNAVAILABLE"


@pytest.mark.slow
def test_a_redirect_is_not_followed(model: ModelServer, settings: LlmSettings) -> None:
    model.script = [Turn(status=307, headers={"Location": f"{model.url}/elsewhere"})] * 3
    with pytest.raises(ToolFailed):
        receive_parts(settings)
    assert all(request.path != "/elsewhere" for request in model.requests)


def test_the_repr_of_settings_hides_the_key() -> None:
    assert KEY not in repr(LlmSettings("openai", "m", "", KEY))
