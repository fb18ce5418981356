"""Forms: fields, lists, boxes, validation, several steps, dates, suggestions, a file, a cart."""

from __future__ import annotations

import calendar
from datetime import date

from tests.trials.agent_bench.site import (
    Site,
    SiteRequest,
    SiteResponse,
    as_json,
    escape,
    page,
    redirect,
)
from tests.trials.agent_bench.solver.intents import (
    Answer,
    Choose,
    Fill,
    Find,
    Open,
    Press,
    Tick,
    Until,
    Upload,
)
from tests.trials.agent_bench.task import (
    CITIES,
    COLOURS,
    THINGS,
    Assignment,
    Seeded,
    bench_task,
    read_script,
)

UPLOADED = "notes.txt"  # a file of the agent's workspace
UPLOADED_TEXT = "The meeting is moved to Thursday.\n"


def field(seeded: Seeded, label: str, name: str, kind: str = "text", more: str = "") -> str:
    """Return a labelled field: the label around it, or beside it by `for`."""
    tag_id = seeded.id()
    control = f"<input type={kind} name={name} id={tag_id} {more}>"
    if seeded.number(0, 1):
        return f"<p><label for={tag_id}>{label}</label> {control}</p>"
    return f"<label>{label} {control}</label>"


@bench_task("contact form", kind="form")
def contact_form(site: Site, seeded: Seeded) -> Assignment:
    """Fill three fields in and send them."""
    name, mail = seeded.person(), seeded.mail()
    note = f"Please call back about {seeded.one(*THINGS)} {seeded.code()}"
    name_label = seeded.one("Your name", "Full name", "Name")
    mail_label = seeded.one("E-mail", "Mail address", "Where we reply")
    note_label, send = seeded.one("Message", "Your request"), seeded.one("Send", "Submit", "Go")
    fields = seeded.order(
        field(seeded, name_label, "name"),
        field(seeded, mail_label, "mail", "email"),
        f"<label>{note_label} <textarea name=note></textarea></label>",
    )
    site.add(
        "/",
        page(
            "Contact",
            f"<h1>Contact</h1><form method=post action=/save>{fields}"
            f"<button>{send}</button></form>",
        ),
    )
    site.posted()
    return Assignment(
        f'Open {site.url}/ and send the form: "{name_label}" is {name}, "{mail_label}" is {mail},'
        f' "{note_label}" is "{note}".',
        [
            Open(f"{site.url}/"),
            Fill(name_label, name),
            Fill(mail_label, mail),
            Fill(note_label, note),
            Press(send, "button"),
        ],
        lambda answer: site.state["posts"] == [{"name": name, "mail": mail, "note": note}],
    )


@bench_task("refused form", kind="form")
def refused_form(site: Site, seeded: Seeded) -> Assignment:
    """The server refuses the form until a box is ticked, and then shows a receipt."""
    mail, receipt = seeded.mail(), seeded.code()
    consent = seeded.one("I agree to the terms", "I have read the rules", "I accept")
    label, send = seeded.one("E-mail", "Your mail"), seeded.one("Register", "Sign up")
    site.state["accepted"] = []
    mail_field, box = seeded.id(), seeded.id()

    def form(value: str = "", error: str = "") -> str:
        return page(
            "Register",
            f"<h1>Register</h1>{error}<form method=post action=/>"
            f"<label>{label} <input name={mail_field} value='{escape(value)}'></label>"
            f"<label><input type=checkbox name={box}> {consent}</label>"
            f"<button>{send}</button></form>",
        )

    @site.view("/")
    def register(request: SiteRequest) -> str:
        if request.method == "GET":
            return form()
        if box not in request.form or "@" not in request.form.get(mail_field, ""):
            return form(request.form.get(mail_field, ""), "<p role=alert>Tick the box, please.</p>")
        site.state["accepted"].append(request.form[mail_field])
        return page("Registered", f"<h1>Registered</h1><p>Your receipt is {receipt}.</p>")

    return Assignment(
        f"Register {mail} at {site.url}/ and answer with the receipt. Agree to what is asked.",
        [
            Open(f"{site.url}/"),
            Fill(label, mail),
            Press(send, "button"),
            Find("alert", r"Tick the box"),
            Tick(consent),
            Press(send, "button"),
            Find("receipt", r"receipt is (\w+)"),
            Answer("{receipt}"),
        ],
        lambda answer: receipt in answer and site.state["accepted"] == [mail],
    )


@bench_task("several of a list", kind="form")
def several_of_a_list(site: Site, seeded: Seeded) -> Assignment:
    """Choose two options of a list that takes several."""
    colours = seeded.some(COLOURS, 6)
    wanted = sorted(seeded.some(colours, 2))
    label, save = seeded.one("Colours", "Favourites"), seeded.one("Save", "Keep")
    options = "".join(f"<option value=v{seeded.number(1, 99)}{c}>{c}</option>" for c in colours)
    site.state["chosen"] = []
    site.add(
        "/",
        page(
            "Colours",
            f"<h1>Choose</h1><form method=post action=/save><label>{label} "
            f"<select name=c multiple size=6>{options}</select></label>"
            f"<button>{save}</button></form>",
        ),
    )

    @site.view("/save")
    def store(request: SiteRequest) -> str:
        site.state["chosen"] = sorted(v.lstrip("v0123456789") for v in request.lists.get("c", []))
        return page("Saved", "<h1>Saved</h1>")

    return Assignment(
        f'At {site.url}/ choose exactly {wanted[0]} and {wanted[1]} in "{label}" and save.',
        [Open(f"{site.url}/"), Choose(label, wanted), Press(save, "button")],
        lambda answer: site.state["chosen"] == wanted,
    )


@bench_task("radio buttons and boxes", kind="form")
def radio_and_boxes(site: Site, seeded: Seeded) -> Assignment:
    """Choose a radio button; one box is already ticked and has to stay so."""
    sizes = seeded.some(("Small", "Medium", "Large", "Huge"), 4)
    size, extra = seeded.one(*sizes), seeded.one("Gift wrap", "Express", "Insurance")
    order = seeded.one("Order", "Buy now")
    radios = "".join(
        f"<label><input type=radio name=size value={name.lower()}> {name}</label>" for name in sizes
    )
    boxes = seeded.order(
        "<label><input type=checkbox name=news checked> Newsletter</label>",
        f"<label><input type=checkbox name=extra> {extra}</label>",
    )
    site.add(
        "/",
        page(
            "Order",
            f"<h1>Order</h1><form method=post action=/save><fieldset><legend>Size</legend>{radios}"
            f"</fieldset>{boxes}<button>{order}</button></form>",
        ),
    )
    site.posted()
    return Assignment(
        f"Order the size {size} at {site.url}/ with {extra} and with the newsletter.",
        [
            Open(f"{site.url}/"),
            Tick(size),
            Tick(extra),
            Tick("Newsletter"),
            Press(order, "button"),
        ],
        lambda answer: site.state["posts"] == [{"size": size.lower(), "news": "on", "extra": "on"}],
    )


@bench_task("three steps", kind="form")
def three_steps(site: Site, seeded: Seeded) -> Assignment:
    """A form of three pages whose state the server keeps."""
    city, guests, number = seeded.one(*CITIES), seeded.number(2, 8), seeded.code()
    labels = ["City", seeded.one("Guests", "How many people"), seeded.one("Comment", "Wishes")]
    on = seeded.one("Next", "Continue", "On")
    site.state |= {"values": {}, "done": False}

    @site.view("/*")
    def step(request: SiteRequest) -> SiteResponse | str:
        at = int(request.path[1:] or 1)
        if request.method == "POST":
            site.state["values"][at] = request.form.get("v", "")
            return redirect(f"/{at + 1}")
        if at > len(labels):
            site.state["done"] = True
            return page("Booked", f"<h1>Booked</h1><p>Number {number}</p>")
        return page(
            f"Step {at}",
            f"<h1>Step {at} of 3</h1><form method=post action=/{at}>"
            f"{field(seeded, labels[at - 1], 'v')}<button>{on}</button></form>",
        )

    values = [city, str(guests), "none"]
    filled = [
        intent
        for label, value in zip(labels, values, strict=True)
        for intent in (Fill(label, value), Press(on, "button"))
    ]
    return Assignment(
        f'Book at {site.url}/1 for {guests} in {city}; "{labels[2]}" is "none". Answer with the'
        " booking's number.",
        [Open(f"{site.url}/1"), *filled, Find("number", r"Number (\w+)"), Answer("{number}")],
        lambda answer: (
            number in answer
            and site.state["done"]
            and site.state["values"] == {1: city, 2: str(guests), 3: "none"}
        ),
    )


@bench_task("date field", kind="date")
def date_field(site: Site, seeded: Seeded) -> Assignment:
    """A date field of the browser."""
    day = date(2027, seeded.number(1, 12), seeded.number(1, 28))
    label, save = seeded.one("Arrival", "From"), seeded.one("Check", "Save")
    site.add(
        "/",
        page(
            "Dates",
            f"<h1>Dates</h1><form method=post action=/save>{field(seeded, label, 'day', 'date')}"
            f"<button>{save}</button></form>",
        ),
    )
    site.posted()
    return Assignment(
        f'At {site.url}/ set "{label}" to {day:%d %B %Y} and press "{save}".',
        [Open(f"{site.url}/"), Fill(label, day.isoformat()), Press(save, "button")],
        lambda answer: site.state["posts"] == [{"day": day.isoformat()}],
    )


CALENDAR = read_script("calendar")


@bench_task("date picker", kind="date")
def date_picker(site: Site, seeded: Seeded) -> Assignment:
    """A calendar that the page's script draws, with buttons for months and days."""
    day = date(2027, seeded.number(2, 5), seeded.number(1, 28))
    title = f"{calendar.month_name[day.month]} 2027"
    opens, save = seeded.one("Choose a day", "Pick a date"), seeded.one("Save", "Book")
    later = seeded.one("Next month", "Later")
    site.add(
        "/",
        page(
            "Calendar",
            f"<h1>When?</h1><form method=post action=/save><input type=hidden name=day id=value>"
            f"<button type=button id=open>{opens}</button><p id=shown></p>"
            "<div id=picker hidden><p><button type=button onclick=move(-1)>Earlier month</button>"
            f" <b id=month></b> <button type=button onclick=move(1)>{later}</button></p>"
            f"<div id=days></div></div><button>{save}</button></form>",
            script=CALENDAR,
        ),
    )
    site.posted()
    return Assignment(
        f"At {site.url}/ choose {day:%d %B %Y} in the calendar and save.",
        [
            Open(f"{site.url}/"),
            Press(opens, "button"),
            Until(title, [Press(later, "button")]),
            Press(str(day.day), "button"),
            Find("shown", "Chosen: "),
            Press(save, "button"),
        ],
        lambda answer: site.state["posts"] == [{"day": day.isoformat()}],
    )


SUGGEST = read_script("suggest")


@bench_task("suggestions", kind="autocomplete")
def suggestions(site: Site, seeded: Seeded) -> Assignment:
    """A field that offers suggestions; the form takes the code of the one that was chosen."""
    start = seeded.one("San", "Bad", "New")
    towns = [f"{start} {name}" for name in seeded.some(CITIES, 5)]
    town = seeded.one(*towns)
    codes = {name: seeded.code(4) for name in towns}
    label, go = seeded.one("Town", "Destination", "Where to"), seeded.one("Save", "Go")
    site.add(
        "/",
        page(
            "Towns",
            f"<h1>Journey</h1><form method=post action=/save><label>{label} "
            "<input id=town autocomplete=off role=combobox></label><ul id=list role=listbox></ul>"
            f"<input type=hidden name=code id=code><button>{go}</button></form>",
            script=SUGGEST,
        ),
    )

    @site.view("/suggest")
    def suggest(request: SiteRequest) -> SiteResponse:
        typed = request.query["q"].casefold()
        fitting = [name for name in towns if typed and name.casefold().startswith(typed)]
        return as_json([{"name": name, "code": codes[name]} for name in fitting])

    site.posted()
    return Assignment(
        f'At {site.url}/ type "{start}" in "{label}", choose {town} of the suggestions and send.',
        [
            Open(f"{site.url}/"),
            Fill(label, start),
            Press(town, "option|clickable"),
            Press(go, "button"),
        ],
        lambda answer: site.state["posts"] == [{"code": codes[town]}],
    )


@bench_task("upload", kind="file")
def upload(site: Site, seeded: Seeded) -> Assignment:
    """Send a file of the workspace."""
    label, send = seeded.one("Attachment", "File", "Document"), seeded.one("Send", "Upload")
    site.state["files"] = []
    site.add(
        "/",
        page(
            "Files",
            "<h1>Send a file</h1><form method=post action=/save enctype=multipart/form-data>"
            f"{field(seeded, label, 'doc', 'file')}<button>{send}</button></form>",
        ),
    )

    @site.view("/save")
    def save(request: SiteRequest) -> str:
        site.state["files"] += request.files.values()
        return page("Saved", "<h1>Received</h1>")

    return Assignment(
        f"Send the file {UPLOADED} of the workspace with the form at {site.url}/.",
        [Open(f"{site.url}/"), Upload(label, UPLOADED), Press(send, "button")],
        lambda answer: site.state["files"] == [UPLOADED_TEXT.encode()],
    )


@bench_task("cart", kind="form")
def cart(site: Site, seeded: Seeded) -> Assignment:
    """Put two of several things into a cart, and order."""
    things = seeded.some(THINGS, 6)
    first, second = seeded.some(things, 2)
    add, number = seeded.one("Add to cart", "Put in the basket"), seeded.code()
    site.state |= {"cart": [], "ordered": []}
    rows = "".join(
        f"<li>{thing.title()} {seeded.number(10, 90)} EUR <a href=/thing/{thing}>{thing} details"
        "</a></li>"
        for thing in things
    )
    site.add("/", page("Shop", f"<h1>Shop</h1><ul>{rows}</ul><a href=/cart>Cart</a>"))

    @site.view("/thing/*")
    def thing_page(request: SiteRequest) -> SiteResponse | str:
        name = request.path.rpartition("/")[2]
        if request.method == "POST":
            site.state["cart"].append(name)
            return redirect("/")
        return page(name, f"<h1>{name}</h1><form method=post><button>{add}</button></form>")

    @site.view("/cart")
    def show_cart(request: SiteRequest) -> str:
        if request.method == "POST":
            site.state["ordered"].append(sorted(site.state["cart"]))
            return page("Ordered", f"<h1>Thank you</h1><p>Order {number}</p>")
        listed = "".join(f"<li>{name}</li>" for name in site.state["cart"])
        return page(
            "Cart", f"<h1>Cart</h1><ul>{listed}</ul><form method=post><button>Order</button></form>"
        )

    chosen = [
        intent
        for thing in (first, second)
        for intent in (Press(f"{thing} details", "link"), Press(add, "button"))
    ]
    return Assignment(
        f"Order one {first} and one {second}, nothing else, at {site.url}/ and answer with the"
        " order's number.",
        [
            Open(f"{site.url}/"),
            *chosen,
            Press("Cart", "link"),
            Press("Order", "button"),
            Find("number", r"Order (\w{6})\b"),
            Answer("{number}"),
        ],
        lambda answer: number in answer and site.state["ordered"] == [sorted((first, second))],
    )
