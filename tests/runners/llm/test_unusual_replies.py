"""Unusual model servers: which of their replies are accepted, and what is never sent to them."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from runners.errors import ModelFailed
from runners.llm.base import LlmCall, LlmSettings, Message
from runners.llm.tool_calls import MAX_CALLS, MAX_RECEIVED, parse_arguments
from tests.runners.llm.test_gateway import final_part, receive_parts, settings  # noqa: F401  (a fixture)
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn

STRAY_VARIABLES = {
    "OPENAI_API_KEY": "stray-key",
    "OPENAI_ORG_ID": "stray-org",
    "OPENAI_PROJECT_ID": "stray-work",
    "OPENAI_CUSTOM_HEADERS": "X-Odd: stray\nAuthorization: stray",
    "ANTHROPIC_API_KEY": "stray-key",
    "ANTHROPIC_AUTH_TOKEN": "stray-token",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Odd: stray\nX-Api-Key: stray\nAnthropic-Version: stray",
    "OPENAI_BASE_URL": "http://127.0.0.1:9",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
}


def calls_of(parts: list[Any]) -> list[LlmCall]:
    return [part for part in parts if isinstance(part, LlmCall)]


def chunk(*calls: dict[str, Any], **delta: Any) -> str:
    """Return a chat completion chunk as some local servers send it."""
    delta_with_calls = {**delta, **({"tool_calls": list(calls)} if calls else {})}
    return json.dumps({"id": "x", "choices": [{"index": 0, "delta": delta_with_calls}]})


def whole_call(id_: str | None, path: str, **more: Any) -> dict[str, Any]:
    """Return a tool call in one piece, as Ollama sends it."""
    function = {"name": "read_file", "arguments": json.dumps({"path": path})}
    return {"type": "function", "function": function, **({"id": id_} if id_ else {}), **more}


def local(model: ModelServer) -> LlmSettings:
    """Return settings for a local server that needs no key."""
    return LlmSettings("openai", "scripted", f"{model.url}/v1")


@pytest.mark.parametrize("key", ["", "ours"])
def test_environment_variables_of_the_client_libraries_are_not_sent(
    model: ModelServer,
    settings: LlmSettings,  # noqa: F811
    key: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in STRAY_VARIABLES.items():
        monkeypatch.setenv(name, value)
    model.script = [Turn("x")]
    receive_parts(LlmSettings(settings.provider, "scripted", settings.base_url, key))
    assert "stray" not in str([model.requests[0].headers, model.requests[0].body])
    assert model.requests[0].key == (key or "none")


@pytest.mark.parametrize("retry_after", ["1e9", "1e20", "1e308", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_very_long_retry_after_is_reported_as_a_number_that_json_can_hold(
    model: ModelServer,
    settings: LlmSettings,  # noqa: F811
    retry_after: str,
) -> None:
    model.script = [Turn(status=429, headers={"Retry-After": retry_after})] * 2
    with pytest.raises(ModelFailed) as failed:
        receive_parts(settings)
    assert orjson.dumps(failed.value.as_dict())
    assert failed.value.details["retryAfterMs"] > 86_400_000
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "retry_after", ["-5", "inf", "nan", "soon", "", "Thu, 01 Jan 1970 00:00:00 GMT"]
)
def test_an_invalid_retry_after_is_retried_soon(
    model: ModelServer,
    settings: LlmSettings,  # noqa: F811
    retry_after: str,
) -> None:
    model.script = [Turn(status=429, headers={"Retry-After": retry_after}), Turn("at last")]
    assert final_part(receive_parts(settings)).content == "at last"


@pytest.mark.parametrize("tokens", [(-5, 3), (10**30, 3), (0, 3)])
def test_an_invalid_token_count_is_replaced_by_an_estimate(
    model: ModelServer,
    settings: LlmSettings,  # noqa: F811
    tokens: tuple[int, int],
) -> None:
    model.script = [Turn("x", tokens=tokens)]
    usage = final_part(receive_parts(settings)).usage
    assert usage.is_estimated
    assert 0 < usage.input_tokens < 1000


def test_calls_over_the_limit_of_a_turn_are_reported_as_problems(
    model: ModelServer,
    settings: LlmSettings,  # noqa: F811
) -> None:
    model.script = [Turn("", [Call("read_file", {"n": n}, f"c{n}") for n in range(200)], piece=99)]
    calls = calls_of(receive_parts(settings))
    assert [call.problem == "" for call in calls] == [n < MAX_CALLS for n in range(200)]
    assert len(model.requests) == 1


def test_a_turn_with_too_many_calls_to_receive_fails(model: ModelServer) -> None:
    calls = [Call("read_file", {}, f"c{n}") for n in range(MAX_RECEIVED + 1)]
    model.script = [Turn("", calls, piece=99)] * 2
    with pytest.raises(ModelFailed, match="calls"):
        receive_parts(local(model))


@pytest.mark.parametrize("index", [{}, {"index": 0}])
def test_calls_without_an_index_are_kept_separate_by_their_ids(
    model: ModelServer, index: dict[str, int]
) -> None:
    junk = chunk(whole_call("a", "1", **index), whole_call("b", "2", **index))
    model.script = [Turn("", junk=junk, stop="stop", reports_usage=False)]
    parts = receive_parts(local(model))
    calls = [(call.tool_call_id, call.arguments, call.problem) for call in calls_of(parts)]
    assert calls == [("a", {"path": "1"}, ""), ("b", {"path": "2"}, "")]
    assert (final_part(parts).stop, model.requests[0].key) == ("tool_calls", "none")


@pytest.mark.parametrize("index", [{}, {"index": 0}])
def test_whole_calls_without_index_and_id_are_kept_separate(
    model: ModelServer, index: dict[str, int]
) -> None:
    calls = [whole_call(None, path, **index) for path in ("1", "2", "3")]
    model.script = [Turn("", junk=chunk(*calls), stop="stop")]
    received = calls_of(receive_parts(local(model)))
    assert [(call.arguments, call.problem) for call in received] == [
        ({"path": path}, "") for path in ("1", "2", "3")
    ]
    assert len({call.tool_call_id for call in received}) == 3


def test_fragments_of_calls_without_index_and_id_are_kept_separate(model: ModelServer) -> None:
    pieces = [{"name": "read_file"}, {"arguments": '{"path"'}, {"arguments": ': "1"}'}]
    pieces += [{"name": "read_file", "arguments": ""}, {"arguments": "{}"}]
    junk = chunk(*({"type": "function", "function": piece} for piece in pieces))
    model.script = [Turn("", junk=junk, stop="stop")]
    received = calls_of(receive_parts(local(model)))
    assert [call.arguments for call in received] == [{"path": "1"}, {}]


def test_fragments_without_an_index_continue_the_newest_call_of_any_index(
    model: ModelServer,
) -> None:
    pieces: list[dict[str, Any]] = [
        {"index": 0, "id": "a", "function": {"name": "read_file", "arguments": ""}},
        {"function": {"arguments": '{"path"'}},
        {"function": {"arguments": ': "1"}'}},
        {"index": 1, "id": "b", "function": {"name": "read_file", "arguments": ""}},
        {"function": {"arguments": '{"path": "2"}'}},
    ]
    model.script = [Turn("", junk=chunk(*pieces), stop="stop")]
    received = calls_of(receive_parts(local(model)))
    assert [(call.tool_call_id, call.arguments, call.problem) for call in received] == [
        ("a", {"path": "1"}, ""),
        ("b", {"path": "2"}, ""),
    ]


def test_a_name_in_every_fragment_of_an_index_is_one_call(model: ModelServer) -> None:
    fragments = ["", '{"path"', ': "1"}', ""]
    pieces = [{"name": "read_file", "arguments": fragment} for fragment in fragments]
    junk = chunk(*({"index": 0, "id": "a", "function": piece} for piece in pieces))
    model.script = [Turn("", junk=junk, stop="stop")]
    (call,) = calls_of(receive_parts(local(model)))
    assert (call.arguments, call.problem) == ({"path": "1"}, "")


def test_arguments_sent_as_an_object_instead_of_a_string_are_accepted(model: ModelServer) -> None:
    call = {"index": 0, "id": 7, "function": {"name": "read_file", "arguments": {"path": "1"}}}
    model.script = [Turn("", junk=chunk(call))]
    (call_received,) = calls_of(receive_parts(local(model)))
    assert (call_received.tool_call_id, call_received.name, call_received.arguments) == (
        "7",
        "read_file",
        {"path": "1"},
    )


@pytest.mark.parametrize("id_", [None, "", "a\0", "\ud800", "ü", "x" * 129])
def test_a_call_without_a_usable_id_gets_a_new_one(model: ModelServer, id_: str | None) -> None:
    model.script = [Turn("", junk=chunk(whole_call(id_, "1", index=0)))]
    (call,) = calls_of(receive_parts(local(model)))
    assert (call.tool_call_id, call.arguments) == ("call_1", {"path": "1"})


def test_a_lone_surrogate_does_not_break_the_token_count(model: ModelServer) -> None:
    model.script = [Turn("", junk=chunk(content="a\0b\ud800"), reports_usage=False)]
    assert final_part(receive_parts(local(model))).usage.output_tokens > 0


def test_a_turn_that_stops_for_tool_calls_but_has_none_is_a_text_reply(
    model: ModelServer,
    settings: LlmSettings,  # noqa: F811
) -> None:
    stop = "tool_calls" if settings.provider == "openai" else "tool_use"
    model.script = [Turn("It is done.", stop=stop)]
    assert final_part(receive_parts(settings)).stop == "stop"


def test_call_ids_of_another_server_are_escaped_for_anthropic(model: ModelServer) -> None:
    model.script = [Turn("x")]
    foreign_calls = [
        LlmCall("functions.read:0", "read_file", {}),
        LlmCall("functions_read_0", "look", {}),
    ]
    answers = [Message("tool", "{}", (), call.tool_call_id) for call in foreign_calls]
    anthropic = LlmSettings("anthropic", "scripted", model.url, "ours")
    receive_parts(
        anthropic, [Message("user", "Go."), Message("assistant", "", foreign_calls), *answers]
    )
    _, calls, results = model.requests[0].body["messages"]
    escaped_ids = [block["id"] for block in calls["content"]]
    assert escaped_ids == ["functions_2eread_3a0", "functions_read_0"]
    assert [block["tool_use_id"] for block in results["content"]] == escaped_ids


def test_arguments_of_too_many_values_are_refused_before_they_are_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(orjson, "loads", lambda _: pytest.fail("they were parsed"))
    arguments, problem = parse_arguments('{"a":[' + "[]," * 100_001 + "1]}")
    assert (arguments, problem) == ({}, "its arguments have more than 100000 values")
