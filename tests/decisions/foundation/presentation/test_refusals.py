"""A page shows what a service refuses in its language, where the text is known."""

from __future__ import annotations

import pytest
from django.utils import translation

from decisions.foundation.presentation.refusals import refusal_text


@pytest.mark.parametrize(
    ("message", "chinese"),
    [
        ("There is no such workspace.", "没有这个工作区。"),
        ("A message has 1 to 20 characters.", "消息须为 1 到 20 个字符。"),
        (
            "label: name a tool, or * for every one.",
            "label: 请填写一个工具名，或以 * 表示全部工具。",
        ),
        ("inputs.urls: [] has less than 1 item", "inputs.urls: [] 少于 1 项"),
        (
            "The address contains a space or a control character; write a space as %20.",
            "地址中有空格或控制字符；空格请写作 %20。",
        ),
    ],
)
def test_a_known_refusal_is_shown_in_chinese_with_its_values(message: str, chinese: str) -> None:
    with translation.override("zh-hans"):
        assert refusal_text(message) == chinese
    assert refusal_text(message) == message


def test_an_unknown_refusal_stays_as_it_is() -> None:
    with translation.override("zh-hans"):
        for message in ("Not today.", "", "x" * 5000, "a: b", "100 % of it"):
            assert refusal_text(message) == message
