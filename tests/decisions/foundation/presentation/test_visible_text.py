"""Texts that a person decides by: whole, and with every character visible."""

from __future__ import annotations

import time

import pytest

from decisions.foundation.presentation.html import shown_html
from decisions.foundation.presentation.visible_text import (
    Fragment,
    as_lines,
    fragments_of,
    parts_of,
    secret_named,
    visible,
)


def shown(text: str) -> str:
    return as_lines(parts_of(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\u202eb\u2066c", "a⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩b⟨U+2066 LEFT-TO-RIGHT ISOLATE⟩c"),
        ("r\u200bm\u200d\ufeff", "r⟨U+200B ZERO WIDTH SPACE⟩m⟨U+200D ZERO WIDTH JOINER⟩⟨U+FEFF"),
        ("\u00ad\u3164\u2800", "⟨U+00AD SOFT HYPHEN⟩⟨U+3164 HANGUL FILLER⟩⟨U+2800 BRAILLE"),
        ("\x1b[2K\x1b[1Aecho ok\r", "⟨ESC⟩[2K⟨ESC⟩[1Aecho ok⟨CR⟩"),
        ("a\tb\x00\x08", "a⟨TAB⟩b⟨NUL⟩⟨BACKSPACE⟩"),
        ("a \nb  ", "a⟨SPACE⟩↵\nb⟨SPACE × 2⟩"),
        ("ls\n\n\n\n\nrm x", "ls⟨NEWLINE × 5⟩\nrm x"),
        ("ok" + " " * 9 + "; rm", "ok⟨SPACE × 9⟩; rm"),
        (" " * 41 + "rm", "⟨SPACE × 41⟩rm"),
        ("#" * 65 + "rm", "⟨# × 65⟩rm"),
        ("a\u00a0b\u3000c", "a⟨U+00A0 NO-BREAK SPACE⟩b⟨U+3000 IDEOGRAPHIC SPACE⟩c"),
        ("x\u0338y\ufe0f", "x⟨U+0338 COMBINING LONG SOLIDUS OVERLAY⟩y⟨U+FE0F VARIATION"),
        ("p\u0430ypal", "p\u0430⟨U+0430⟩ypal"),
        ("\u0441\u043e\u0440\u0443", "\u0441⟨U+0441⟩\u043e⟨U+043E⟩\u0440⟨U+0440⟩\u0443⟨U+0443⟩"),
        ("\uff52 \u2212rf \u037e", "\uff52⟨U+FF52⟩ \u2212⟨U+2212⟩rf \u037e⟨U+037E⟩"),
        ("\u05e9\u05dc", "⟨U+05E9⟩⟨U+05DC⟩"),
        ("⟨SPACE⟩", "⟨U+27E8 MATHEMATICAL LEFT ANGLE BRACKET⟩SPACE⟨U+27E9 MATHEMATICAL RIGHT"),
        ("a\ud800", "a⟨U+D800⟩"),
    ],
)
def test_characters_that_hide_something_are_written_out(text: str, expected: str) -> None:
    assert shown(text).startswith(expected)


def test_a_person_sees_a_character_that_reorders_a_text() -> None:
    assert shown("a\u202eb") == "a⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩b"


@pytest.mark.parametrize(
    "text",
    [
        "git commit -m 'café naïve'",
        "привет, мир",
        "写文件，然后结束。使用 Python。然后 ls，卡尔·马克思",
        "Мы с ней, а он у реки: расход — 5 рублей (т.е. много). да/нет, IT-компания.",
        "Όταν και το ποτό είναι κρύο, η ζωή είναι ωραία.",
        "父の日のノート、ノ",
        "ваза и\u0306од हिंदी",
        "def f(a):\n    return a",
        "a  b",
    ],
)
def test_ordinary_texts_are_shown_as_they_are(text: str) -> None:
    assert shown(text).replace("↵\n", "\n") == text


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("https://аррӏе.com", "аррӏе"),
        ("rm файл приветмир с.sh у:/e", "су"),
        ("ɡoogle.com", "ɡ"),
        ("ɑpple.com", "ɑ"),
        ("gıthub.com", "ı"),
        ("ᴄontinuity.com", "ᴄ"),
        ("ѵіѕа.com", "ѵіѕа"),
        ("мой адрес: ѵіѕа.рф, он новый", "ѵіѕа"),
        ("открой сайт.com/а", "саа"),
        ("ноΡма", "ноΡма"),
        ("ノetcノpasswd", "ノノ"),
        ("https:ノノe.com", "ノノ"),
        ("a〰b", "〰"),
        ("rm —rf", "—"),
        ("e╱f 中╱文", "╱╱"),
        ("example。com ex·ample", "。·"),
        ("gဝဝgle ١0", "ဝဝ١"),
        ("https：//e.com", "："),
        ("ﬁle ‥/etc Ⅳ №5 wait… IT™", "ﬁ‥Ⅳ"),
        ("a﹘b goog\ufe8de", "﹘\ufe8d"),
        ("a一b cーd 第一Python", "一ー"),
    ],
)
def test_look_alikes_beside_ascii_characters_are_written_out(text: str, marked: str) -> None:
    parts = parts_of(text)
    codes = [part.text for part in parts if part.kind == "mark"]
    assert codes == [f"U+{ord(char):04X}" for char in marked]
    assert "".join(part.text for part in parts if part.kind != "mark") == text


@pytest.mark.parametrize("text", ["é" + "." * 250_000, "—" * 250_000, "a " + "٠" * 250_000])
def test_a_long_run_of_one_character_is_read_once(text: str) -> None:
    started = time.monotonic()
    parts_of(text)
    assert time.monotonic() - started < 60  # many minutes, if it is read from each character


def test_a_person_sees_a_letter_that_imitates_another_in_a_host_name() -> None:
    assert shown("ɡoogle.com") == "ɡ⟨U+0261⟩oogle.com"


@pytest.mark.parametrize("text", ["é\u0336", "я\u0336", "я\u20dd", "ọ\u0301", "。\u0307"])
def test_a_mark_that_may_cover_a_character_is_written_out(text: str) -> None:
    assert shown(text).startswith(f"{text[0]}⟨U+{ord(text[1]):04X} ")


def test_a_secret_stands_by_its_name_and_a_text_cannot_imitate_one() -> None:
    assert shown(f"login {secret_named('credentials.password')}") == (
        "login ⟨secret credentials.password⟩"
    )
    assert "⟨secret" not in shown("⟨secret credentials.password⟩")


def test_fragments_cover_a_text_without_a_gap() -> None:
    text = "".join(f"line {number} \u200b\n" for number in range(500)) + " " * 3_000 + "end"
    fragments = list(fragments_of("cmd", text, "text", size=1_000))
    assert sum(part.length for fragment in fragments for part in fragment.parts) == len(text)
    assert fragments[0].range.startswith("characters 1 to ")
    assert fragments[-1].range.endswith(f" to {len(text)} of {len(text)}")
    assert all(fragment.cost < 1_200 for fragment in fragments)


def test_a_short_text_is_one_fragment_without_a_range() -> None:
    assert [one.range for one in fragments_of("cmd", "", "text", size=10)] == [""]
    assert [one.range for one in fragments_of("cmd", "ls", "text", size=10)] == [""]


def test_a_text_on_one_line_says_how_long_it_was() -> None:
    assert visible("a\nb") == "a↵b"
    assert visible("x" * 50, 10) == "xxxxxxxxxx⟨shortened; 50 characters⟩"


def test_html_escapes_the_text_and_colours_the_lines_of_a_diff() -> None:
    text = "@@ -1 +1 @@\n-<b>\n+<i>\n same"
    html = str(shown_html(Fragment("Diff", "", tuple(parts_of(text)), is_diff=True)))
    assert '<span class="shown-removed">-&lt;b&gt;<i class="shown-mark">↵</i>\n</span>' in html
    assert '<span class="shown-added">+&lt;i&gt;' in html
    assert html.endswith(" same")


def test_html_marks_what_is_not_the_text_itself() -> None:
    html = str(shown_html(Fragment("cmd", "", tuple(parts_of("a\u200b<script>")))))
    assert html == 'a<b class="shown-mark">⟨U+200B ZERO WIDTH SPACE⟩</b>&lt;script&gt;'
