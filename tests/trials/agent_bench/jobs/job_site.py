"""The site of the jobs: login with CSRF, items over six pages, search, forms, a feed, failures."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.trials.agent_bench.site import (
    Site,
    SiteRequest,
    SiteResponse,
    as_json,
    escape,
    page,
    redirect,
    serving,
)
from tests.trials.agent_bench.task import CITIES, THINGS, Seeded, read_script

SEED = 18
ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
USER, PASSWORD = "ada", "correct horse 7"
MENU = (
    "<nav><a href=/>Start</a> <a href=/items>Items</a> <a href=/search>Search</a>"
    " <a href=/contact>Contact</a> <a href=/table>Sales</a> <a href=/feed>Feed</a></nav>"
)
BANNER = (
    "<div id=banner style='position:fixed;bottom:0;left:0;right:0;background:#ddd;padding:12px'>"
    "We use cookies. <button onclick=\"document.getElementById('banner').remove()\">Accept"
    "</button></div>"
)


@dataclass(frozen=True)
class JobData:
    """What the site knows, and what right answers are checked against."""

    items: list[dict[str, Any]]
    sold: dict[str, dict[str, int]]
    feed: list[str]
    balance: int
    order: str
    limit: int
    code: str
    receipt: str
    booking: str
    total: int

    @classmethod
    def make(cls) -> JobData:
        """Return the data of the site; it is always the same."""
        seeded = Seeded("jobs", SEED)
        prices = seeded.some(range(100, 999), 60)
        items = [
            {
                "number": number,
                "name": f"{THINGS[number % 10].title()} {seeded.code(4)}",
                "price": price,
                "code": seeded.code(),
                "stock": seeded.number(1, 99),
            }
            for number, price in enumerate(prices, 1)
        ]
        quarters = ("Q1", "Q2", "Q3", "Q4")
        return cls(
            items=items,
            sold={city: {q: seeded.number(1000, 9999) for q in quarters} for city in CITIES},
            feed=[f"Story {n}: {seeded.person()} {seeded.code()}" for n in range(1, 46)],
            balance=seeded.number(1000, 9999),
            order=seeded.code(8),
            limit=seeded.number(10_000, 99_999),
            code=str(seeded.number(100_000, 999_999)),
            receipt=seeded.code(8),
            booking=seeded.code(8),
            total=seeded.number(100_000, 999_999),
        )


@contextmanager
def serve_job_site() -> Iterator[tuple[Site, JobData]]:
    """Serve the site for the length of the block."""
    site, data = Site(), JobData.make()
    for add in (
        _start,
        _login,
        _account,
        _secure,
        _items,
        _search,
        _contact,
        _booking,
        _feed,
        _failures,
    ):
        add(site, data)
    with serving(site):
        yield site, data


def _document(title: str, body: str, script: str = "") -> str:
    return page(title, f"{MENU}<main><h1>{title}</h1>{body}</main>{BANNER}", script=script)


def _start(site: Site, data: JobData) -> None:
    site.add("/", _document("The shop", "<p>Welcome.</p><iframe src=/hours title=Hours></iframe>"))
    site.add("/hours", page("Hours", "<p>Open from 9 to 17.</p>"))
    head = "".join(f"<th>{q}</th>" for q in data.sold[CITIES[0]])
    rows = "".join(
        f"<tr><th>{city}</th>" + "".join(f"<td>{n}</td>" for n in sold.values()) + "</tr>"
        for city, sold in data.sold.items()
    )
    site.add("/table", _document("Sales", f"<table><tr><th>City</th>{head}</tr>{rows}</table>"))
    links = "<a href=/downloads/report.csv>The report as CSV</a>"
    site.add("/downloads", _document("Downloads", f"<p>Figures of the year.</p>{links}"))

    @site.view("/downloads/report.csv")
    def report(request: SiteRequest) -> SiteResponse:
        headers = {"Content-Disposition": 'attachment; filename="report.csv"'}
        text = "part,amount\nNorth,1200\nSouth,1400\n" * 20 + f"TOTAL,{data.total}\n"
        return SiteResponse(text, headers=headers, media_type="text/csv")


def _login(site: Site, data: JobData) -> None:
    tokens: set[str] = set()

    @site.view("/login")
    def login(request: SiteRequest) -> SiteResponse | str:
        error = ""
        if request.method == "POST":
            form = request.form
            if form.get("csrf") not in tokens or form.get("csrf") != request.cookies.get("csrf"):
                return SiteResponse(page("Forbidden", "<h1>CSRF</h1>"), status=403)
            if (form.get("user"), form.get("password")) == (USER, PASSWORD):
                return redirect("/account", **{"Set-Cookie": f"session={data.receipt}; Path=/"})
            error = "<p role=alert>Wrong user name or password.</p>"
        token = f"t{len(tokens)}{data.order}"
        tokens.add(token)
        form_html = (
            f"{error}<form method=post action=/login><input type=hidden name=csrf value={token}>"
            "<label>User name <input name=user></label>"
            "<label>Password <input name=password type=password></label>"
            "<button>Log in</button></form>"
        )
        headers = {"Set-Cookie": f"csrf={token}; Path=/"}
        return SiteResponse(_document("Log in", form_html), headers=headers)


def _account(site: Site, data: JobData) -> None:
    def member(request: SiteRequest) -> bool:
        return request.cookies.get("session") == data.receipt

    @site.view("/account")
    def account(request: SiteRequest) -> SiteResponse | str:
        if not member(request):
            return redirect("/login")
        text = f"<p>Balance: {data.balance} EUR</p><a href=/orders>Your orders</a>"
        return _document(f"Account of {USER}", text)

    @site.view("/orders")
    def orders(request: SiteRequest) -> SiteResponse | str:
        if not member(request):
            return redirect("/login")
        return _document(
            "Orders", f"<ol><li>Newest order: {data.order}</li><li>Older: A1</li></ol>"
        )


def _secure(site: Site, data: JobData) -> None:
    site.state |= {"code sent": False, "codes used": 0}

    @site.view("/secure")
    def secure(request: SiteRequest) -> SiteResponse | str:
        form = request.form
        if request.method == "POST" and "code" in form:
            if site.state["code sent"] and form["code"] == data.code:
                site.state["codes used"] += 1
                return redirect("/secure/account", **{"Set-Cookie": f"s2={data.order}; Path=/"})
            return _document("Wrong code", "<a href=/secure>Again</a>")
        if request.method == "POST" and form == {"user": USER, "password": PASSWORD}:
            site.state["code sent"] = True
            return _document(
                "Code",
                "<form method=post action=/secure><label>One-time code <input name=code></label>"
                "<button>Confirm</button></form>",
            )
        return _document(
            "Secure log in",
            "<form method=post action=/secure><label>User name <input name=user></label>"
            "<label>Password <input name=password type=password></label>"
            "<button>Next</button></form>",
        )

    @site.view("/mailbox")
    def mailbox(request: SiteRequest) -> str:
        text = f"<p>Your code is {data.code}.</p>" if site.state["code sent"] else "<p>Empty.</p>"
        return _document("Mailbox", text)

    @site.view("/secure/account")
    def secure_account(request: SiteRequest) -> SiteResponse | str:
        if request.cookies.get("s2") != data.order:
            return redirect("/secure")
        return _document("Secure account", f"<p>Credit limit: {data.limit} EUR</p>")


def _items(site: Site, data: JobData) -> None:
    @site.view("/items")
    def items(request: SiteRequest) -> str:
        at = int(request.query.get("page", 1))
        rows = "".join(
            f"<li class=item><a href=/item/{item['number']}>{item['name']}</a>"
            f" <span class=price>{item['price']} EUR</span></li>"
            for item in data.items[at * 10 - 10 : at * 10]
        )
        pager = f"<p>Page {at} of 6 "
        if at > 1:
            pager += f"<a href='/items?page={at - 1}'>Previous</a> "
        if at < 6:
            pager += f"<a class=next rel=next href='/items?page={at + 1}'>Next</a>"
        return _document("Items", f"<ul>{rows}</ul>{pager}</p>")

    @site.view("/item/*")
    def item_page(request: SiteRequest) -> SiteResponse | str:
        number = int(request.path.rpartition("/")[2])
        if not 1 <= number <= len(data.items):
            return SiteResponse(_document("No such item", ""), status=404)
        item = data.items[number - 1]
        if "slow" in request.query and number % 4 == 0:
            time.sleep(2)
        text = f"<p>Code: {item['code']}</p><p>{item['price']} EUR</p>"
        stock = (
            f"<button onclick=\"fetch('/stock/{number}').then((r) => r.text()).then((t) => {{"
            " document.getElementById('stock').textContent = t; })\">Show stock</button>"
            "<p id=stock></p>"
        )
        return _document(item["name"], text + stock)

    @site.view("/stock/*")
    def stock(request: SiteRequest) -> SiteResponse:
        number = int(request.path.rpartition("/")[2])
        return SiteResponse(f"{data.items[number - 1]['stock']} in stock", media_type="text/plain")


def _search(site: Site, data: JobData) -> None:
    body = (
        "<label>Search for <input id=q name=q></label><button id=go>Search</button>"
        "<div id=results></div><p id=clock></p>"
    )
    site.add("/search", _document("Search", body, read_script("job_search")))

    @site.view("/api/search")
    def search(request: SiteRequest) -> SiteResponse:
        word = request.query.get("q", "").casefold()
        found = [item for item in data.items if word and word in item["name"].casefold()]
        return as_json([{k: item[k] for k in ("number", "name", "price")} for item in found])


def _contact(site: Site, data: JobData) -> None:
    site.state["messages"] = []

    @site.view("/contact")
    def contact(request: SiteRequest) -> str:
        form, errors = request.form, []
        if request.method == "POST":
            if not ADDRESS.fullmatch(form.get("mail", "")):
                errors.append("Mail: enter an address.")
            if form.get("topic", "") == "":
                errors.append("Topic: choose one.")
            if len(form.get("text", "")) < 20:
                errors.append("Message: at least 20 characters.")
            if "agree" not in form:
                errors.append("You have to agree to the terms.")
            if not errors:
                site.state["messages"].append(dict(form))
                return _document("Thank you", f"<p>Your receipt: {data.receipt}</p>")
        listed = "".join(f"<li>{error}</li>" for error in errors)
        alert = f"<ul role=alert>{listed}</ul>" if errors else ""
        mail = escape(form.get("mail", ""))
        chosen = form.get("topic", "")
        options = "".join(
            f"<option value={name}{' selected' if name == chosen else ''}>{name.title()}</option>"
            for name in ("sales", "support", "press")
        )
        ticked = " checked" if "agree" in form else ""
        return _document(
            "Contact",
            f"{alert}<form method=post action=/contact novalidate>"
            f"<label>Mail <input name=mail type=email required value='{mail}'>"
            "</label><label>Topic <select name=topic required><option value=''>Choose...</option>"
            f"{options}</select></label><label>Message <textarea name=text>"
            f"{escape(form.get('text', ''))}</textarea></label>"
            f"<label><input type=checkbox name=agree{ticked}> I agree to the terms</label>"
            "<button>Send</button></form>",
        )


def _booking(site: Site, data: JobData) -> None:
    site.state["bookings"] = []
    body = (
        "<form method=post action=/booking onsubmit=\"return confirm('Book with payment?')\">"
        "<label>Day <input type=date name=day required></label>"
        "<label>Room <select name=room><option>Single</option><option>Double</option>"
        "<option>Suite</option></select></label>"
        "<label><input type=checkbox name=breakfast> Breakfast</label>"
        "<label><input type=checkbox name=terms required> I accept the terms</label>"
        "<button>Book</button></form>"
    )

    @site.view("/booking")
    def booking(request: SiteRequest) -> str:
        if request.method == "POST":
            site.state["bookings"].append(dict(request.form))
            return _document("Booked", f"<p>Booking number: {data.booking}</p>")
        return _document("Book a room", body)


def _feed(site: Site, data: JobData) -> None:
    site.add("/feed", _document("Feed", "<div id=feed></div>", read_script("feed")))

    @site.view("/rows")
    def rows(request: SiteRequest) -> SiteResponse:
        at = int(request.query["at"])
        return as_json(data.feed[at : at + 15])


def _failures(site: Site, data: JobData) -> None:
    for path, status in (("/missing", 404), ("/broken", 500), ("/busy", 503), ("/private", 401)):
        site.views[path] = _failing(status)
    site.views["/loop"] = lambda request: redirect("/loop")
    site.views["/cut"] = lambda request: SiteResponse(page("Cut", "<p>x</p>" * 500), cut=True)

    @site.view("/hang")
    def hang(request: SiteRequest) -> str:
        time.sleep(90)
        return "late"


def _failing(status: int) -> Any:
    title = {404: "Not found", 500: "Server error", 503: "Busy", 401: "Log in first"}[status]
    return lambda request: SiteResponse(_document(title, f"<p>Error {status}.</p>"), status=status)


def closed_port() -> int:
    """Return a port that no server listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
