"""Reading: facts, tables, comparisons, lists over several pages, searches."""

from __future__ import annotations

import re

from tests.trials.agent_bench.site import Site, SiteRequest, SiteResponse, as_json, page
from tests.trials.agent_bench.solver.intents import (
    Answer,
    Collect,
    Fill,
    Find,
    Intent,
    Open,
    Press,
    ScrollList,
    ScrollToEnd,
    Until,
)
from tests.trials.agent_bench.task import (
    CITIES,
    COLOURS,
    THINGS,
    Assignment,
    Seeded,
    bench_task,
    has_word,
    read_script,
)

FILLER = (
    "This chapter describes how the settings of the server work together. Most installations"
    " never change them. Read the notes before you do, and measure afterwards. "
)


@bench_task("fact in a manual", kind="fact")
def fact_in_a_manual(site: Site, seeded: Seeded) -> Assignment:
    """A default value on one of twelve pages with long texts."""
    names = [
        f"{a}_{b}" for a in ("cache", "log", "net", "disk") for b in ("size", "delay", "limit")
    ]
    wanted = seeded.one(*names)
    values = {name: seeded.number(1001, 9999) for name in names}
    chapters = seeded.some(names, len(names))
    links = "".join(f"<li><a href=/{name}.html>The setting {name}</a></li>" for name in chapters)
    site.add("/", page("Manual", f"<h1>Manual</h1><p>{FILLER}</p><ul>{links}</ul>"))
    for name in names:
        text = "".join(f"<h2>Section {n}</h2><p>{FILLER * 6}</p>" for n in range(4))
        fact = f"<p>The default of <code>{name}</code> is {values[name]} units.</p>"
        site.add(f"/{name}.html", page(name, f"<h1>{name}</h1>{text}{fact}<p>{FILLER}</p>"))
    return Assignment(
        f"What is the default of {wanted} in the manual at {site.url}/?",
        [
            Open(f"{site.url}/"),
            Press(wanted, "link"),
            Find("value", rf"default of {wanted} is (\d+)"),
            Answer("{value}"),
        ],
        lambda answer: has_word(answer, values[wanted]),
    )


@bench_task("table", kind="table")
def table(site: Site, seeded: Seeded) -> Assignment:
    """One cell of a table whose rows and columns have a random order."""
    cities = seeded.some(CITIES, 8)
    quarters = seeded.some(("Q1", "Q2", "Q3", "Q4"), 4)
    sold = {(city, q): seeded.number(1000, 9999) for city in cities for q in quarters}
    city, quarter = seeded.one(*cities), seeded.one(*quarters)
    head = "".join(f"<th>{q}</th>" for q in quarters)
    rows = "".join(
        f"<tr><th>{c}</th>" + "".join(f"<td>{sold[c, q]}</td>" for q in quarters) + "</tr>"
        for c in cities
    )
    site.add("/", page("Sales", f"<h1>Sales</h1><table><tr><th>City</th>{head}</tr>{rows}</table>"))
    column = quarters.index(quarter)
    cells = r"\D+\d+" * column
    return Assignment(
        f"How many units were sold in {city} in {quarter} according to {site.url}/?",
        [Open(f"{site.url}/"), Find("sold", rf"{city}{cells}\D+(\d+)"), Answer("{sold}")],
        lambda answer: has_word(answer, sold[city, quarter]),
    )


@bench_task("comparison", kind="compare")
def comparison(site: Site, seeded: Seeded) -> Assignment:
    """The cheapest of three offers, each on its own page."""
    names = seeded.some(("Basic", "Plus", "Family", "Studio", "Solo"), 3)
    prices = dict(zip(names, seeded.some(range(20, 90), 3), strict=True))
    code = {name: seeded.code() for name in names}
    links = "".join(f"<li><a href=/{name}>{name}</a></li>" for name in names)
    site.add("/", page("Plans", f"<h1>Plans</h1><ul>{links}</ul>"))
    for name in names:
        text = f"<h1>{name}</h1><p>Offer {code[name]} costs {prices[name]} EUR a month.</p>"
        site.add(f"/{name}", page(name, text))
    read: list[Intent] = []
    for name in names:
        pattern = r"Offer (\w+) costs (\d+) EUR"
        read += [Open(f"{site.url}/"), Press(name, "link"), Find(name, pattern)]
    cheapest = min(names, key=prices.__getitem__)

    def answer_of(found: dict[str, str]) -> str:
        return found[min(names, key=lambda name: int(found[f"{name}2"]))]

    return Assignment(
        f"Compare the plans at {site.url}/ and answer with the offer's code of the cheapest.",
        [*read, Answer(answer_of)],
        lambda answer: (
            code[cheapest] in answer and not any(code[n] in answer for n in names if n != cheapest)
        ),
    )


@bench_task("many pages", kind="pages")
def many_pages(site: Site, seeded: Seeded) -> Assignment:
    """The sum of numbers on eight pages that are linked from one."""
    stock = {seeded.id() + str(n): seeded.number(100, 999) for n in range(8)}
    links = "".join(f"<li><a href=/s/{k}>Store {k}</a></li>" for k in stock)
    site.add("/", page("Stores", f"<h1>Stores</h1><ul>{links}</ul>"))
    for key, count in stock.items():
        text = f"<h1>Store {key}</h1><p>In stock: {count} pieces</p><a href=/>All stores</a>"
        site.add(f"/s/{key}", page(key, text))
    read: list[Intent] = [Open(f"{site.url}/")]
    for key in stock:
        read += [Press(f"Store {key}", "link"), Find(key, r"In stock: (\d+)"), Press("All stores")]
    return Assignment(
        f"How many pieces are in stock in all stores together that {site.url}/ lists?",
        [*read, Answer(lambda found: str(sum(int(found[key]) for key in stock)))],
        lambda answer: has_word(answer, sum(stock.values())),
    )


@bench_task("six pages", kind="paging")
def six_pages(site: Site, seeded: Seeded) -> Assignment:
    """Sixty items over six pages: how many are of one colour, and which is the dearest?"""
    prices = seeded.some(range(100, 999), 60)
    items = [(f"{seeded.one(*THINGS)} {seeded.code(5)}", p, seeded.one(*COLOURS)) for p in prices]
    on = seeded.one("Next", "Next page", "Further")

    @site.view("/")
    def items_page(request: SiteRequest) -> str:
        at = int(request.query.get("p", 1))
        rows = "".join(
            f"<li>{name} costs {price} EUR</li>" for name, price, _ in items[at * 10 - 10 : at * 10]
        )
        pager = f"<a href=/?p={at + 1}>{on}</a>" if at < 6 else f"<span>{on}</span>"
        return page("Items", f"<h1>Items</h1><p>Page {at} of 6</p><ul>{rows}</ul>{pager}")

    dearest = max(items, key=lambda item: item[1])[0].split()[1]

    def answer_of(found: dict[str, list[tuple[str, str]]]) -> str:
        best = max(found["items"], key=lambda item: int(item[1]))
        return f"{len(found['items'])} items; {best[0]}"

    return Assignment(
        f"How many items does {site.url}/ list on all its pages, and what is the code behind the"
        " name of the dearest one?",
        [
            Open(f"{site.url}/"),
            Collect("items", r"\w+ (\w{5}) costs (\d+) EUR", on),
            Answer(answer_of),
        ],
        lambda answer: has_word(answer, 60) and has_word(answer, dearest),
    )


SEARCH = read_script("search")


@bench_task("search by script", kind="search")
def search_by_script(site: Site, seeded: Seeded) -> Assignment:
    """Results that a script renders a while after the search."""
    stock = [f"{thing} {seeded.code(5)}" for thing in THINGS for _ in range(seeded.number(1, 4))]
    word = seeded.one(*THINGS)
    label, go = seeded.one("Search", "What do you need"), seeded.one("Find", "Go", "Search now")
    site.add(
        "/",
        page(
            "Search",
            f"<h1>Search</h1><label>{label} <input id=q></label>"
            f"<button id=go>{go}</button><div id=out></div>",
            script=SEARCH,
        ),
    )

    @site.view("/api")
    def api(request: SiteRequest) -> SiteResponse:
        return as_json([name for name in stock if request.query["q"] in name])

    codes = [name.split()[1] for name in stock if name.startswith(word)]
    others = [name.split()[1] for name in stock if not name.startswith(word)]
    return Assignment(
        f'Search for "{word}" at {site.url}/ and answer with the codes of all that is found.',
        [
            Open(f"{site.url}/"),
            Fill(label, word),
            Press(go, "button"),
            Find("count", r"(\d+) results"),
            Collect("codes", rf"Found {word} (\w+)"),
            Answer(lambda found: " ".join(found["codes"])),
        ],
        lambda answer: (
            all(code in answer for code in codes) and not any(code in answer for code in others)
        ),
    )


FEED = read_script("feed")


@bench_task("endless list", kind="scroll")
def endless_list(site: Site, seeded: Seeded) -> Assignment:
    """A list that loads more entries when it is scrolled to its end."""
    count = seeded.number(41, 69)
    rows = [f"Entry {n + 1}: {seeded.one(*THINGS)} {seeded.code()}" for n in range(count)]
    last = rows[-1].split()[-1]
    site.add("/", page("Feed", f"<h1>Feed {seeded.code()}</h1><div id=feed></div>", script=FEED))

    @site.view("/rows")
    def more(request: SiteRequest) -> SiteResponse:
        at = int(request.query["at"])
        return as_json(rows[at : at + 15])

    return Assignment(
        f"{site.url}/ loads more entries when it is scrolled. What is the code of the last one?",
        [
            Open(f"{site.url}/"),
            ScrollToEnd(),
            Collect("codes", r"Entry (\d+): \w+ (\w{6})"),
            Answer(lambda found: max(found["codes"], key=lambda one: int(one[0]))[1]),
        ],
        lambda answer: has_word(answer, last),
    )


VIRTUAL = read_script("virtual")


@bench_task("virtual list", kind="scroll")
def virtual_list(site: Site, seeded: Seeded) -> Assignment:
    """A list of 120 rows of which the page has sixteen at a time."""
    rows = [f"Row {n:03} {seeded.code(4)}" for n in range(120)]
    wanted = rows[seeded.number(25, 60)]
    site.state["picked"] = []
    site.add(
        "/",
        page(
            "Rows",
            "<h1>Rows</h1><p id=out></p><div id=box tabindex=0 style='height:400px;width:330px;"
            "overflow:auto;position:relative'><div id=inner style='height:4800px;"
            "position:relative'></div></div>",
            script=f"const ROWS = {rows!r};{VIRTUAL}",
        ),
    )

    @site.view("/pick")
    def pick(request: SiteRequest) -> SiteResponse:
        site.state["picked"].append(request.form["row"])
        return as_json({})

    return Assignment(
        f'Press the row "{wanted}" in the list at {site.url}/; the list shows few rows at a time.',
        [
            Open(f"{site.url}/"),
            Until(re.escape(wanted), [ScrollList()]),
            Press(wanted, "button"),
            Find("out", "Picked"),
        ],
        lambda answer: site.state["picked"] == [wanted],
    )
