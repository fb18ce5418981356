"""Layers: banners, dialogs of the page, frames in frames, shadow roots, menus on hover."""

from __future__ import annotations

from tests.trials.agent_bench.site import Site, SiteRequest, SiteResponse, as_json, page
from tests.trials.agent_bench.solver.intents import (
    Answer,
    Fill,
    Find,
    Hover,
    IfShown,
    Open,
    Press,
    WaitFor,
)
from tests.trials.agent_bench.task import THINGS, Assignment, Seeded, bench_task, read_script

MIDDLE = "<p>Middle</p><iframe src=/inner width=600 height=350></iframe>"
FULL = "position:fixed;inset:0;background:#000a;z-index:9"


def counted(site: Site, path: str = "/press") -> None:
    """Count the requests that a page's script sends."""
    site.state["pressed"] = []

    @site.view(path)
    def press(request: SiteRequest) -> SiteResponse:
        site.state["pressed"].append(request.form.get("name", ""))
        return as_json({"code": site.state.get("code", "")})


SEND = read_script("send")


@bench_task("cookie banner", kind="overlay")
def cookie_banner(site: Site, seeded: Seeded) -> Assignment:
    """A banner covers the page until it is refused."""
    refuse, press = seeded.one("Refuse all", "Only necessary"), seeded.one("Subscribe", "Join")
    buttons = seeded.order(
        "<button onclick='consent(true)'>Accept all</button>",
        f"<button onclick='consent(false)'>{refuse}</button>",
    )
    counted(site)
    site.add(
        "/",
        page(
            "News",
            f"<h1>News</h1><button onclick=\"send('join')\">{press}</button><p id=out></p>"
            f"<div id=banner style='{FULL}'><p>We use cookies.</p>{buttons}</div>",
            script=SEND + "const consent = (yes) => { if (yes) send('tracked');"
            " document.getElementById('banner').remove(); };",
        ),
    )
    return Assignment(
        f'At {site.url}/ refuse the cookies and press "{press}".',
        [
            Open(f"{site.url}/"),
            Press(refuse, "button"),
            Press(press, "button"),
            Find("sent", "Sent join"),
        ],
        lambda answer: site.state["pressed"] == ["join"],
    )


@bench_task("dialog of the page", kind="overlay")
def page_dialog(site: Site, seeded: Seeded) -> Assignment:
    """A modal dialog of the page appears a moment after the page has loaded."""
    close, label = seeded.one("No, thanks", "Not now"), seeded.one("Coupon", "Code")
    code, save = seeded.code(), seeded.one("Redeem", "Apply")
    site.add(
        "/",
        page(
            "Coupon",
            f"<h1>Coupon</h1><form method=post action=/save><label>{label} <input name=c></label>"
            f"<button>{save}</button></form><dialog id=ad><p>Our newsletter!</p>"
            f"<button onclick=ad.close()>{close}</button></dialog>",
            script="setTimeout(() => document.getElementById('ad').showModal(), 150);",
        ),
    )
    site.posted()
    return Assignment(
        f'Redeem the coupon {code} at {site.url}/ ("{label}"). Close what gets in the way.',
        [
            Open(f"{site.url}/"),
            WaitFor("newsletter"),
            IfShown(close, [Press(close, "button")]),
            Fill(label, code),
            Press(save, "button"),
        ],
        lambda answer: site.state["posts"] == [{"c": code}],
    )


@bench_task("frames in frames", kind="frame")
def frames_in_frames(site: Site, seeded: Seeded) -> Assignment:
    """A form in a frame of a frame."""
    label, save, value = seeded.one("Voucher", "Number"), seeded.one("Check", "Send"), seeded.code()
    site.add("/", page("Outer", "<h1>Outer</h1><iframe src=/middle width=700 height=500></iframe>"))
    site.add("/middle", page("Middle", MIDDLE))
    site.add(
        "/inner",
        page(
            "Inner",
            f"<form method=post action=/save><label>{label} <input name=v></label>"
            f"<button>{save}</button></form>",
        ),
    )
    site.posted()
    return Assignment(
        f'Enter {value} as "{label}" at {site.url}/ and press "{save}".',
        [Open(f"{site.url}/"), Fill(label, value), Press(save, "button")],
        lambda answer: site.state["posts"] == [{"v": value}],
    )


SHADOW = read_script("shadow")


@bench_task("shadow roots", kind="shadow")
def shadow_roots(site: Site, seeded: Seeded) -> Assignment:
    """A field and a button in a shadow root of a shadow root."""
    label, press = seeded.one("Nickname", "Alias"), seeded.one("Keep", "Store")
    value = f"{seeded.one(*THINGS)}{seeded.number(100, 999)}"
    inner = f"<label>{label} <input></label><button>{press}</button>"
    counted(site)
    site.add(
        "/",
        page(
            "Panels",
            "<h1>Panels</h1><x-outer></x-outer><p id=out></p>",
            script=SEND + SHADOW.replace("LABEL", "Panel").replace("INNER", inner),
        ),
    )
    return Assignment(
        f'Enter {value} as "{label}" at {site.url}/ and press "{press}".',
        [
            Open(f"{site.url}/"),
            Fill(label, value),
            Press(press, "button"),
            Find("out", "Sent"),
        ],
        lambda answer: site.state["pressed"] == [value],
    )


@bench_task("menu on hover", kind="hover")
def hover_menu(site: Site, seeded: Seeded) -> Assignment:
    """A menu whose entries are there while the mouse is over its title."""
    title, code = seeded.one("Products", "Services"), seeded.code()
    entries = seeded.some(("Archive", "Prices", "Contact", "Jobs"), 4)
    entry = entries[0]
    links = seeded.order(*(f"<a href=/{name}>{name}</a><br>" for name in entries))
    style = ".m div{display:none;padding:8px;background:#eee} .m:hover div{display:block}"
    site.add(
        "/",
        page(
            "Menu",
            f"<h1>Start</h1><div class=m style='width:200px'><button>{title}</button>"
            f"<div>{links}</div></div><p>Welcome.</p>",
            style=style,
        ),
    )
    for name in entries:
        shown = code if name == entry else "nothing"
        site.add(f"/{name}", page(name, f"<h1>{name}</h1><p>The word is {shown}</p>"))
    return Assignment(
        f'Which word is on the page "{entry}" of the menu "{title}" at {site.url}/?',
        [
            Open(f"{site.url}/"),
            Hover(title),
            Press(entry, "link"),
            Find("word", r"word is (\w+)"),
            Answer("{word}"),
        ],
        lambda answer: code in answer,
    )
