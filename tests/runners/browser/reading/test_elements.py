"""The usable elements of a page, and the secrets among them."""

from __future__ import annotations

import json

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer


def test_elements_are_listed_from_top_to_bottom_with_type_label_box_and_state(
    reader: Reader, page_server: PageServer
) -> None:
    body = """<!doctype html><body style='margin:0'>
      <button style='position:absolute;top:50px;left:20px;width:80px;height:30px' disabled>Buy
      </button>
      <a href=/x style='position:absolute;top:10px;left:200px;width:50px;height:20px'>Right</a>
      <a href=/y style='position:absolute;top:10px;left:5px;width:50px;height:20px'>Left</a>"""
    assert reader.elements(page_server.add("/e", body)) == [
        {
            "id": "e1",
            "type": "link",
            "label": "Left",
            "state": {"href": "y"},
            "bounds": {"x": 5, "y": 10, "width": 50, "height": 20},
        },
        {
            "id": "e2",
            "type": "link",
            "label": "Right",
            "state": {"href": "x"},
            "bounds": {"x": 200, "y": 10, "width": 50, "height": 20},
        },
        {
            "id": "e3",
            "type": "button",
            "label": "Buy",
            "state": {"disabled": True},
            "bounds": {"x": 20, "y": 50, "width": 80, "height": 30},
        },
    ]


@pytest.mark.parametrize(
    ("markup", "kind", "label", "state"),
    [
        (
            "<label for=i>Name</label><input id=i value=Ann required>",
            "textbox",
            "Name",
            {"value": "Ann", "required": True},
        ),
        ("<label>Mail <input type=email placeholder=x@y></label>", "email", "Mail", {}),
        ("<input type=search placeholder='Find it'>", "searchbox", "Find it", {}),
        ("<input type=checkbox checked aria-label=Agree>", "checkbox", "Agree", {"checked": True}),
        ("<label><input type=radio name=r>Red</label>", "radio", "Red", {"checked": False}),
        ("<input type=range aria-label=Size value=7>", "slider", "Size", {"value": "7"}),
        ("<input type=submit value=Send>", "button", "Send", {}),
        (
            "<select aria-label=City><option>A<option selected>B</select>",
            "combobox",
            "City",
            {"options": ["A", "B"], "value": "B"},
        ),
        (
            "<textarea aria-label=Note readonly>x\ny</textarea>",
            "textbox",
            "Note",
            {"value": "x y", "readonly": True},
        ),
        (
            "<details open><summary>More</summary>x</details>",
            "disclosure",
            "More",
            {"expanded": True},
        ),
        (
            "<div role=switch aria-checked=true aria-label=Wifi>o</div>",
            "switch",
            "Wifi",
            {"checked": True},
        ),
        ("<div role=tab aria-selected=false>Tab</div>", "tab", "Tab", {"selected": False}),
        (
            "<button aria-expanded=false aria-label='打开菜单'>☰</button>",
            "button",
            "打开菜单",
            {"expanded": False},
        ),
        ("<span id=l>By id</span><input aria-labelledby=l>", "textbox", "By id", {}),
        ("<button><img alt=Icon width=9 height=9></button>", "button", "Icon", {}),
        (
            "<div contenteditable=true aria-label=Editor>text</div>",
            "textbox",
            "Editor",
            {"value": "text"},
        ),
        ("<div onclick='x()'>Press</div>", "clickable", "Press", {}),
    ],
)
def test_each_kind_of_element_has_its_type(
    reader: Reader, page_server: PageServer, *, markup: str, kind: str, label: str, state: object
) -> None:
    url = page_server.add("/kind", f"<!doctype html><meta charset=utf-8>{markup}")
    (element,) = reader.elements(url)
    assert (element["type"], element["label"], element["state"]) == (kind, label, state)


def test_unusable_elements_are_not_listed(reader: Reader, page_server: PageServer) -> None:
    body = """<input type=hidden><button hidden>a</button><a>no target</a>
      <button style='visibility:hidden'>b</button><div style='display:none'><button>c</button></div>
      <div inert><button>d</button></div><a href=/x style='position:absolute;left:-9999px'>e</a>
      <a href=/y><span onclick=x()>f</span></a><div onclick='x()'><button>g</button></div>"""
    labels = [element["label"] for element in reader.elements(page_server.add("/u", body))]
    assert labels == ["f", "g"]


def test_shadow_roots_and_frames_of_the_same_origin_are_read(
    reader: Reader, page_server: PageServer
) -> None:
    body = """<!doctype html><body style='margin:0'><div id=host></div>
      <iframe style='position:absolute;left:100px;top:200px;border:10px solid'
        srcdoc="<body style='margin:0'><button style='margin:5px'>Framed</button>"></iframe>
      <script>host.attachShadow({mode: 'open'}).innerHTML = '<button>Shadowed</button>'</script>"""
    shadowed, framed = reader.elements(page_server.add("/deep", body))
    assert (shadowed["label"], framed["label"]) == ("Shadowed", "Framed")
    assert (framed["bounds"]["x"], framed["bounds"]["y"]) == (115, 215)


def test_of_many_elements_the_first_are_listed_and_all_are_counted(
    reader: Reader, page_server: PageServer
) -> None:
    url = page_server.add("/many", "<p><a href=/a>link</a>" * 120)
    page = reader(url, extract={"maxElements": 7})
    info = page["pageInfo"]
    assert len(info["elements"]) == 7
    assert (page["elementCount"], info["totalElements"], info["truncated"]) == (120, 120, True)
    assert reader(url, extract={"maxElements": 1000})["pageInfo"]["truncated"] is False


def test_the_same_page_read_twice_has_the_same_ids(reader: Reader, page_server: PageServer) -> None:
    url = page_server.add("/ids", "<button>a</button><button>b</button>")
    assert reader.elements(url) == reader.elements(url)


SECRETS = [
    "<input type=password value={}>",
    "<input name=user_password value={}>",
    "<input id=apiKey value={}>",
    "<input autocomplete=one-time-code value={}>",
    "<input autocomplete=cc-csc value={}>",
    "<input aria-label='Access token' value={}>",
    "<input placeholder='Client secret' value={}>",
    "<label>Passwort / password<input value={}></label>",
    "<label for=a>口令</label><input id=a value={}>",
    "<label>密码<input value={}></label>",
    "<label>短信验证码<input value={}></label>",
    "<span id=s>访问令牌</span><input aria-labelledby=s value={}>",
    "<textarea name=private_key>{}</textarea>",
    "<select name=token><option>{}</select>",
    "<div contenteditable=true aria-label=密钥>{}</div>",
    "<input style='-webkit-text-security:disc' value={}>",
]


@pytest.mark.parametrize("markup", SECRETS)
def test_the_value_of_a_secret_field_appears_nowhere(
    reader: Reader, page_server: PageServer, markup: str
) -> None:
    secret = "Zq7xKv2m"
    echo = f"<h1>Saved {secret}</h1><p>它是{secret}。</p><a href='/t?k={secret}'>go {secret}</a>"
    text = (
        f"<!doctype html><meta charset=utf-8><title>{secret}</title>{markup.format(secret)}{echo}"
    )
    page = reader(page_server.add("/secret", text))
    assert secret not in json.dumps(page, ensure_ascii=False)
    fields = [e for e in page["pageInfo"]["elements"] if e["type"] not in ("link",)]
    assert [field["state"]["value"] for field in fields] == ["***"]


@pytest.mark.parametrize(
    "markup",
    [
        "<input name=secretary value=Zq7xKv2m>",
        "<input name=tokenizer value=Zq7xKv2m>",
        "<input name=city value=Zq7xKv2m>",
        "<input aria-label=用户名 value=Zq7xKv2m>",
    ],
)
def test_other_fields_show_their_value(
    reader: Reader, page_server: PageServer, markup: str
) -> None:
    url = page_server.add("/open", f"<!doctype html><meta charset=utf-8>{markup}")
    (field,) = reader.elements(url)
    assert field["state"]["value"] == "Zq7xKv2m"


def test_a_short_secret_does_not_mask_words_that_contain_it(
    reader: Reader, page_server: PageServer
) -> None:
    url = page_server.add("/pin", "<input name=pin value=2024><p>In 2024: item 120245, PIN-2024.")
    assert "In ***: item 120245, PIN-***." in reader.text(url)
    url = page_server.add("/tiny", "<input name=pin value=1><p>1 of 21")
    assert "1 of 21" in reader.text(url)


def test_an_empty_secret_field_has_no_value(reader: Reader, page_server: PageServer) -> None:
    (field,) = reader.elements(page_server.add("/empty", "<input type=password name=p>"))
    assert field["state"] == {}
