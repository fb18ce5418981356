"""The buffer of step events before they are written: in order, joined, capped, without secrets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.foundation.security.masking import Masker
from runs.execution import event_buffer
from runs.execution.event_buffer import (
    MAX_STREAMED_BYTES,
    MERGE_BYTES,
    MERGE_S,
    EventBuffer,
    size_of,
)
from runs.lifecycle.changes import NewEvent


def buffer_with(
    sent_bytes: int = 0, mask: Callable[[NewEvent], NewEvent] = lambda event: event
) -> EventBuffer:
    return EventBuffer(mask, lambda: sent_bytes)


def chat_delta(text: str, step: int = 0) -> NewEvent:
    return NewEvent("chatDelta", {"step": step, "content": text})


def update(delta: object, step: int = 0, at: int = 0) -> NewEvent:
    return NewEvent("tool.update", {"step": step, "delta": delta, "at": at})


def texts_of(events: EventBuffer) -> list[object]:
    return [event.data.get("content", event.data.get("delta")) for event in events.events()]


def test_nothing_is_due_while_the_buffer_is_empty() -> None:
    assert not buffer_with().is_due
    assert buffer_with().events() == []


def test_the_first_event_is_due_at_once_and_the_next_a_little_later() -> None:
    events = buffer_with()
    events.add(chat_delta("a"))
    assert events.is_due
    events.clear()
    events.add(chat_delta("b"))
    assert 0 <= events.due_in() <= MERGE_S
    assert texts_of(events) == ["b"]


def test_an_event_of_another_type_flushes_all_waiting_events_at_once() -> None:
    events = buffer_with()
    events.add(chat_delta("a"))
    events.clear()
    for event in (
        chat_delta("b"),
        NewEvent("step.progress", {"step": 0}),
        chat_delta("c"),
        chat_delta("d"),
    ):
        events.add(event)
    assert events.is_due
    assert texts_of(events) == ["b", None, "cd"]


def test_a_kilobyte_is_due_at_once_and_no_joined_event_is_larger() -> None:
    events = buffer_with()
    events.add(chat_delta("x"))
    events.clear()
    for _ in range(300):
        events.add(chat_delta("12345678"))
    assert events.is_due
    lengths = [len(str(text)) for text in texts_of(events)]
    assert lengths == [MERGE_BYTES, MERGE_BYTES, 300 * 8 - 2048]


def test_pieces_are_joined_by_step_and_events_without_text_stay_separate() -> None:
    events = buffer_with()
    for event in (
        update("a"),
        update("x", step=1),
        update("b", at=9),
        update({"n": 1}),
        update("c"),
        update({"n": 2}),
        update("y", step=1),
    ):
        events.add(event)
    assert texts_of(events) == ["ab", "xy", {"n": 1}, "c", {"n": 2}]
    assert events.events()[0].data["at"] == 0


def test_two_calls_of_one_step_are_not_joined() -> None:
    events = buffer_with()
    for call in ("1", "2", "1", "2", "2"):
        events.add(NewEvent("tool.update", {"step": 0, "toolCallId": call, "delta": call}))
    assert texts_of(events) == ["11", "222"]


def test_model_text_after_a_tools_update_stays_after_it() -> None:
    events = buffer_with()
    for event in (
        chat_delta("a"),
        chat_delta("b"),
        update("c"),
        chat_delta("d"),
        chat_delta("e"),
        update("f"),
    ):
        events.add(event)
    assert texts_of(events) == ["ab", "c", "de", "f"]


def test_earlier_events_count_towards_the_cap() -> None:
    events = buffer_with(MAX_STREAMED_BYTES - size_of({"step": 0, "content": "ab"}))
    for text in "abc":
        events.add(chat_delta(text))
    assert texts_of(events) == ["a", "b"]
    assert events.events()[-1].data["truncated"] is True
    events.clear()
    events.add(chat_delta("d"))
    assert events.events() == []


def test_a_text_is_cut_between_two_characters_and_is_marked_as_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_buffer, "MAX_STREAMED_BYTES", 40)
    events = buffer_with()
    events.add(chat_delta("é" * 100))
    (event,) = events.events()
    assert event.data == {"step": 0, "content": "é" * 20, "truncated": True}


def test_an_update_without_text_is_dropped_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_buffer, "MAX_STREAMED_BYTES", 60)
    events = buffer_with()
    events.add(NewEvent("tool.update", {"step": 2, "toolCallId": "c", "delta": ["x" * 100]}))
    assert events.events()[0].data == {"step": 2, "toolCallId": "c", "truncated": True}


def test_a_secret_split_over_two_pieces_is_masked_when_they_are_joined() -> None:
    masker = Masker(["hunter2-hunter2"])
    events = buffer_with(mask=lambda event: NewEvent(event.type, masker.value(event.data)))
    for text in ("it is hunter2-", "hunter2, he said"):
        events.add(chat_delta(text))
    assert texts_of(events) == ["it is ***, he said"]


@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=300), st.booleans()), max_size=60))
def test_no_text_of_a_step_is_lost_or_moved(pieces: list[tuple[int, str, bool]]) -> None:
    events, written = buffer_with(), list[NewEvent]()
    for step, text, is_write in pieces:
        events.add(chat_delta(text, step))
        if is_write:
            written += events.events()
            events.clear()
    written += events.events()
    for step, group in groupby(
        sorted(pieces, key=lambda piece: piece[0]), key=lambda piece: piece[0]
    ):
        stored = "".join(event.data["content"] for event in written if event.data["step"] == step)
        assert stored == "".join(text.replace("\0", "\ufffd") for _, text, _ in group)
