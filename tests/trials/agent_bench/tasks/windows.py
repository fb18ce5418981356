"""Windows and dialogs: a second tab, a window with an opener, confirm, prompt, download."""

from __future__ import annotations

from tests.trials.agent_bench.site import Site, SiteRequest, SiteResponse, page, redirect
from tests.trials.agent_bench.solver.intents import (
    Answer,
    Fill,
    Find,
    FindInResult,
    Open,
    Press,
    SwitchTab,
)
from tests.trials.agent_bench.task import CITIES, THINGS, Assignment, Seeded, bench_task, has_word
from tests.trials.agent_bench.tasks.layers import SEND, counted


@bench_task("two tabs", kind="tabs")
def two_tabs(site: Site, seeded: Seeded) -> Assignment:
    """A window that a script opens shows a code; the first window takes it."""
    code, label = seeded.code(), seeded.one("Code", "Pass code")
    show, save = seeded.one("Show the code", "Open the code window"), seeded.one("Check", "Enter")
    site.add(
        "/",
        page(
            "First",
            f"<h1>First</h1><button onclick=\"window.open('/code','w','width=500,height=400')\">"
            f"{show}</button><form method=post action=/save><label>{label} <input name=c></label>"
            f"<button>{save}</button></form>",
        ),
    )
    site.add("/code", page("Code", f"<h1>Code</h1><p>It is {code}</p>"))
    site.posted()
    return Assignment(
        f'At {site.url}/ press "{show}": a window shows a code. Enter it as "{label}" in the first'
        f' window and press "{save}".',
        [
            Open(f"{site.url}/"),
            Press(show, "button"),
            SwitchTab(newest=True),
            Find("code", r"It is (\w{6})"),
            SwitchTab(newest=False),
            Fill(label, "{code}"),
            Press(save, "button"),
        ],
        lambda answer: site.state["posts"] == [{"c": code}],
    )


@bench_task("window with an opener", kind="tabs")
def window_with_opener(site: Site, seeded: Seeded) -> Assignment:
    """A chooser in a window of its own sets a field of the page that opened it."""
    cities = seeded.some(CITIES, 5)
    city = seeded.one(*cities)
    choose, save = seeded.one("Choose a city", "Select city"), seeded.one("Send", "Save")
    buttons = "".join(
        f"<button onclick=\"opener.set('{name}'); window.close()\">{name}</button>"
        for name in cities
    )
    site.add(
        "/",
        page(
            "Journey",
            f"<h1>Journey</h1><button onclick=\"window.open('/cities','w','width=500')\">{choose}"
            "</button><form method=post action=/save><input name=city id=city readonly>"
            f"<button>{save}</button></form>",
            script="window.set = (name) => { document.getElementById('city').value = name; };",
        ),
    )
    site.add("/cities", page("Cities", f"<h1>Cities</h1>{buttons}"))
    site.posted()
    return Assignment(
        f'At {site.url}/ choose {city} in the window that "{choose}" opens, then press "{save}".',
        [
            Open(f"{site.url}/"),
            Press(choose, "button"),
            SwitchTab(newest=True),
            Press(city, "button"),
            SwitchTab(newest=False),
            Press(save, "button"),
        ],
        lambda answer: site.state["posts"] == [{"city": city}],
    )


@bench_task("question before deleting", kind="dialog")
def question_before_deleting(site: Site, seeded: Seeded) -> Assignment:
    """`confirm()` has to be accepted; one of several rows is deleted."""
    names = seeded.some(THINGS, 5)
    wanted = seeded.one(*names)
    site.state["rows"] = list(names)

    @site.view("/")
    def rows(request: SiteRequest) -> str:
        listed = "".join(
            f"<li>{n} <form method=post action=/delete/{n}"
            f" onsubmit=\"return confirm('Delete {n}?')\">"
            f"<button>Delete {n}</button></form></li>"
            for n in site.state["rows"]
        )
        return page("Rows", f"<h1>Rows</h1><ul>{listed}</ul>")

    @site.view("/delete/*")
    def delete(request: SiteRequest) -> SiteResponse:
        if request.method == "POST":
            site.state["rows"].remove(request.path.rpartition("/")[2])
        return redirect("/")

    return Assignment(
        f"Delete {wanted} at {site.url}/, and nothing else.",
        [Open(f"{site.url}/"), Press(f"Delete {wanted}", "button", accept=True)],
        lambda answer: site.state["rows"] == [name for name in names if name != wanted],
    )


@bench_task("prompt", kind="dialog")
def prompt(site: Site, seeded: Seeded) -> Assignment:
    """`prompt()` takes a text."""
    name, press = seeded.code(), seeded.one("Rename", "Change the name")
    counted(site)
    site.add(
        "/",
        page(
            "Board",
            f"<h1>Board</h1><button onclick=\"const n = prompt('New name?'); if (n) send(n);\">"
            f"{press}</button><p id=out></p>",
            script=SEND,
        ),
    )
    return Assignment(
        f'At {site.url}/ press "{press}" and answer its question with {name}.',
        [
            Open(f"{site.url}/"),
            Press(press, "button", accept=True, text=name),
            Find("out", "Sent"),
        ],
        lambda answer: site.state["pressed"] == [name],
    )


@bench_task("download", kind="file")
def download(site: Site, seeded: Seeded) -> Assignment:
    """A number that only a file has."""
    rows = [(city, seeded.number(10_000, 99_999)) for city in seeded.some(CITIES, 6)]
    city, wanted = seeded.one(*rows)
    label = seeded.one("Report as CSV", "Download the figures")
    text = "city,sold\n" + "".join(f"{name},{sold}\n" for name, sold in rows)
    site.add("/", page("Report", f"<h1>Report</h1><p>The year.</p><a href=/report>{label}</a>"))

    @site.view("/report")
    def report(request: SiteRequest) -> SiteResponse:
        headers = {"Content-Disposition": 'attachment; filename="report.csv"'}
        return SiteResponse(text, headers=headers, media_type="text/csv")

    return Assignment(
        f"How many were sold in {city} according to the file that {site.url}/ offers?",
        [
            Open(f"{site.url}/"),
            Press(label, "link"),
            FindInResult("sold", rf"{city},(\d+)"),
            Answer("{sold}"),
        ],
        lambda answer: has_word(answer, wanted),
    )
