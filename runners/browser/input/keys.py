"""The keys of a keyboard in CDP's terms (US layout, like Playwright's)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

Key = Mapping[str, Any]
MODIFIERS = {"Alt": 1, "Control": 2, "Shift": 8}
SHIFT = MODIFIERS["Shift"]
_DIGITS = dict(zip("0123456789", ")!@#$%^&*(", strict=True))
_MARKS = {
    ";": (":", "Semicolon", 186),
    "=": ("+", "Equal", 187),
    ",": ("<", "Comma", 188),
    "-": ("_", "Minus", 189),
    ".": (">", "Period", 190),
    "/": ("?", "Slash", 191),
    "`": ("~", "Backquote", 192),
    "[": ("{", "BracketLeft", 219),
    "\\": ("|", "Backslash", 220),
    "]": ("}", "BracketRight", 221),
    "'": ('"', "Quote", 222),
}
NAMED: Mapping[str, Key] = {
    "Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    **{
        name: {"key": name, "code": name, "windowsVirtualKeyCode": number}
        for name, number in {
            "Backspace": 8,
            "Tab": 9,
            "Escape": 27,
            "PageUp": 33,
            "PageDown": 34,
            "End": 35,
            "Home": 36,
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "ArrowDown": 40,
            "Delete": 46,
        }.items()
    },
}


def key_of(name: str) -> Key:
    """Return a key by name, such as `Enter`, `a`, `Shift+Tab` or `Control+Shift+z`."""
    if len(name) == 1:
        return keyboard()[name]
    *held, last = name.split("+")
    if len(last) == 1:
        last = last.upper() if "Shift" in held else last.lower()
    key = NAMED.get(last) or keyboard()[" " if last == "Space" else last]
    modifiers = sum(MODIFIERS[modifier] for modifier in held)
    if modifiers & ~SHIFT:  # types nothing
        key = {field: value for field, value in key.items() if field != "text"}
    return {**key, "modifiers": modifiers} if modifiers else key


@cache
def keyboard() -> Mapping[str, Key]:
    """Return the keys by the character that they type."""
    return {str(key["text"]): key for key in _keys()}


def _keys() -> Iterator[Key]:
    yield _key(" ", "Space", 32)
    for letter in "abcdefghijklmnopqrstuvwxyz":
        code, number = f"Key{letter.upper()}", ord(letter.upper())
        yield _key(letter, code, number)
        yield _key(letter.upper(), code, number, SHIFT)
    for digit, shifted in _DIGITS.items():
        yield _key(digit, f"Digit{digit}", ord(digit))
        yield _key(shifted, f"Digit{digit}", ord(digit), SHIFT)
    for mark, (shifted, code, number) in _MARKS.items():
        yield _key(mark, code, number)
        yield _key(shifted, code, number, SHIFT)


def _key(text: str, code: str, number: int, modifiers: int = 0) -> Key:
    return {
        "key": text,
        "code": code,
        "windowsVirtualKeyCode": number,
        "text": text,
        "modifiers": modifiers,
    }
