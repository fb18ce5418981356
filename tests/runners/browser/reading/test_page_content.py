"""The text of a page, as an agent receives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer

LOREM = "Enough words to be taken for the text of a page and not for its frame. " * 4


def content_of(
    reader: Reader, page_server: PageServer, body: str, **extract: Any
) -> Mapping[str, Any]:
    url = page_server.add("/case", f"<!doctype html><meta charset=utf-8><title>T</title>{body}")
    content: Mapping[str, Any] = reader(url, extract={"maxContentLength": 50_000, **extract})[
        "content"
    ]
    return content


def text_of(reader: Reader, page_server: PageServer, body: str, **extract: Any) -> str:
    sections = content_of(reader, page_server, body, **extract)["sections"]
    return "\n\n".join(section["text"] for section in sections)


def test_text_is_in_sections_under_its_headings(reader: Reader, page_server: PageServer) -> None:
    body = "<p>Before.<h1>One</h1><p>First<h2>Two <em>b</em></h2><p>Second.<p>Third.<h2>Three</h2>"
    assert content_of(reader, page_server, body) == {
        "sections": [
            {"heading": "", "level": 0, "text": "Before."},
            {"heading": "One", "level": 1, "text": "First"},
            {"heading": "Two b", "level": 2, "text": "Second.\n\nThird."},
            {"heading": "Three", "level": 2, "text": ""},
        ],
        "truncated": False,
    }


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>a <b>bold</b>, <i>it</i> and <code>x = 1</code>", "a **bold**, *it* and `x = 1`"),
        ("<p>See <a href='/docs/x?a=1#b'>the docs</a>.", "See [the docs](docs/x?a=1#b)."),
        ("<p><a href='https://example.org/p'>out</a>", "[out](https://example.org/p)"),
        ("<p><a href='#top'>up</a> <a href='javascript:x()'>run</a>", "up run"),
        ("<h2>x<a href='#x'>¶</a></h2><p>y<a href='#y'>#</a>", "y"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d"),
        ("<ol start=3><li>a<li><p>b<p>c</ol>", "3. a\n4. b\n  c"),
        ("<dl><dt>Term<dd>Meaning<dt>Other<dd>More</dl>", "Term\n  Meaning\nOther\n  More"),
        ("<blockquote><p>One<p>Two</blockquote>", "> One\n> Two"),
        (
            "<pre class=language-python>def f():\n    return 1\n</pre>",
            "```python\ndef f():\n    return 1\n```",
        ),
        ("<p>line<br>next", "line\nnext"),
        ("<p><img alt='A chart'> <img src=x>", "![A chart]"),
        ("<p><a href=/i><img alt=Home></a>", "[Home](i)"),
        ("<div style='display:flex'><span>Price</span><span>10</span></div>", "Price 10"),
        ("<p>soft\u00adware\u200b and\u00a0space", "software and space"),
    ],
)
def test_markup_becomes_compact_markdown(
    reader: Reader, page_server: PageServer, markup: str, text: str
) -> None:
    assert text_of(reader, page_server, markup) == text


def test_a_data_table_becomes_rows(reader: Reader, page_server: PageServer) -> None:
    table = "<table><tr><th>Name<th>Sum<tr><td>a|b<td><a href=/x>1</a><tr><td>c<td>2</table>"
    expected = "| Name | Sum |\n|---|---|\n| a\\|b | [1](x) |\n| c | 2 |"
    assert text_of(reader, page_server, table) == expected


def test_a_layout_table_is_read_as_text(reader: Reader, page_server: PageServer) -> None:
    assert text_of(reader, page_server, "<table><tr><td><p>a<p>b<td><p>c</table>") == "a\n\nb\n\nc"


FRAME = f"""
<a class=skip-link href='#m'>Skip to content</a>
<header><nav><a href=/>Home</a></nav></header>
<div id=cookie-banner style='position:fixed'>We use cookies <button>Accept</button></div>
<div class=sidebar><a href=/a>Other page</a></div>
<div id=m><h1>Title</h1><p>{LOREM}</p>
<p hidden>hidden</p><p style='display:none'>gone</p><p style='visibility:hidden'>unseen</p>
<p aria-hidden=true>decoration</p><script>var code</script><style>p {{}}</style>
<template>later</template><noscript>no script</noscript><button>Copy</button>
<textarea>field text</textarea><details><summary>More</summary><p>folded</details></div>
<footer>Copyright</footer>"""


def test_navigation_cookie_banners_scripts_fields_and_hidden_elements_are_left_out(
    reader: Reader, page_server: PageServer
) -> None:
    sections = content_of(reader, page_server, FRAME)["sections"]
    assert sections == [{"heading": "Title", "level": 1, "text": f"{LOREM.strip()}\n\nMore"}]


def test_a_remark_inside_main_is_text_and_one_outside_is_not(
    reader: Reader, page_server: PageServer
) -> None:
    body = f"<div>around</div><main><h1>T</h1><p>{LOREM}<aside>A remark.</aside></main><p>after"
    assert text_of(reader, page_server, body) == f"{LOREM.strip()}\n\nA remark."


def test_a_page_that_is_all_navigation_is_still_read(
    reader: Reader, page_server: PageServer
) -> None:
    links = "".join(f"<li><a href=/{n}>Chapter number {n}</a>" for n in range(20))
    text = text_of(reader, page_server, f"<nav><ul>{links}</ul></nav>")
    assert "[Chapter number 7](7)" in text


def test_open_shadow_roots_slots_and_frames_of_the_same_origin_are_read(
    reader: Reader, page_server: PageServer
) -> None:
    body = """<p>Outside.</p><div id=host></div><x-card><b slot=s>slotted</b></x-card>
      <iframe srcdoc='<h2>Framed</h2><p>In the frame.'></iframe><script>
      host.attachShadow({mode: 'open'}).innerHTML = '<p>In the shadow.';
      document.querySelector('x-card').attachShadow({mode: 'open'}).innerHTML =
        '<p>Card: <slot name=s></slot>';</script>"""
    text = text_of(reader, page_server, body)
    assert text == "Outside.\n\nIn the shadow.\n\nCard: **slotted**\n\nIn the frame."


def test_chinese_text_stays_whole(reader: Reader, page_server: PageServer) -> None:
    body = "<h1>订单管理</h1><p>您有<b>三</b>个待处理订单，<a href=/o>查看更多</a>。"
    section = {"heading": "订单管理", "level": 1, "text": "您有**三**个待处理订单，[查看更多](o)。"}
    assert content_of(reader, page_server, body)["sections"] == [section]


@pytest.mark.parametrize("limit", [1, 10, 11, 12, 13, 16, 17, 20])
def test_content_is_truncated_at_whole_characters(
    reader: Reader, page_server: PageServer, limit: int
) -> None:
    text = "👩‍👩‍👧‍👦é🇨🇳中👍🏽" * 20
    content = content_of(reader, page_server, f"<p>{text}", maxContentLength=limit)
    text_read = "".join(section["text"] for section in content["sections"])
    assert content["truncated"] is True
    assert text.startswith(text_read)
    assert text_read in {text[:end] for end in (0, 7, 8, 10, 11, 13, 20)}
    assert len(text_read) <= limit


def test_sections_beyond_the_limit_are_counted(reader: Reader, page_server: PageServer) -> None:
    body = "".join(f"<h2>Part {n}</h2><p>{LOREM}" for n in range(12))
    url = page_server.add("/long", f"<title>Long</title>{body}")
    page = reader(url, extract={"maxContentLength": 500})
    assert page["contentSections"] == 12
    assert 1 <= len(page["content"]["sections"]) < 12
    total = sum(len(s["heading"]) + len(s["text"]) for s in page["content"]["sections"])
    assert total == 500


def test_text_that_no_database_accepts_is_cleaned(reader: Reader, page_server: PageServer) -> None:
    body = "<p id=p></p><script>p.textContent = 'a\\u0000b\\ud800c\\u001bd'</script>"
    assert text_of(reader, page_server, body) == "ab\ufffdcd"


def test_fields_that_are_not_requested_are_null(reader: Reader, page_server: PageServer) -> None:
    url = page_server.url("/plain")
    only_info = reader(url, extract={"content": False})
    only_content = reader(url, extract={"pageInfo": False})
    assert (only_info["content"], only_content["pageInfo"]) == (None, None)
    assert only_info["contentSections"] == only_content["contentSections"] == 1


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("<form><input name=u><input type=password></form>", "login"),
        ("<form><label>A<input></label><label>B<input></label></form>", "form"),
        (f"<article><h1>News</h1><p>{LOREM * 6}</article>", "article"),
        ("<ul>" + "".join(f"<li><a href=/{n}>Item {n}</a>" for n in range(12)) + "</ul>", "list"),
        ("<table>" + "<tr><td>a<td>b" * 8 + "</table>", "table"),
        (f"<h1>x</h1><h2>y</h2><h2>z</h2><pre>code</pre><p>{LOREM * 6}", "document"),
        ("<canvas></canvas><button>Play</button>", "app"),
        ("<h1>Hello</h1>", "page"),
    ],
)
def test_the_type_of_a_page_is_inferred_from_its_markup(
    reader: Reader, page_server: PageServer, body: str, kind: str
) -> None:
    page = reader(page_server.add("/kind", f"<!doctype html><title>T</title>{body}"))
    assert page["pageType"] == page["pageInfo"]["page"]["type"] == kind


def test_a_page_of_search_results_is_recognized_by_its_address(
    reader: Reader, page_server: PageServer
) -> None:
    page_server.add("/find", "<input type=search>" + "<p><a href=/r>Result</a>" * 5)
    assert reader(page_server.url("/find?q=x"))["pageType"] == "search"


def test_the_summary_is_the_description_or_else_the_first_words(
    reader: Reader, page_server: PageServer
) -> None:
    described = "<meta name=description content='What it is about.'><p>Text."
    page_server.add("/described", described)
    page_server.add("/prose", f"<h1>x</h1><pre>code</pre><ul><li>a</ul><p>{LOREM * 3}")
    summaries = [
        reader(page_server.url(path))["pageInfo"]["page"]["summary"]
        for path in ("/described", "/prose")
    ]
    assert summaries[0] == "What it is about."
    assert summaries[1].startswith(LOREM[:60])
    assert summaries[1].endswith("…")
    assert len(summaries[1]) <= 240
