"""Gestures: drag and drop, a slider, keys."""

from __future__ import annotations

from tests.trials.agent_bench.site import Site, page
from tests.trials.agent_bench.solver.intents import Drag, Find, Keys, Open, Press
from tests.trials.agent_bench.task import THINGS, Assignment, Seeded, bench_task, read_script
from tests.trials.agent_bench.tasks.layers import SEND, counted

DROP = read_script("drop")


@bench_task("drag and drop", kind="drag")
def drag_and_drop(site: Site, seeded: Seeded) -> Assignment:
    """Drag a card to a column, with the browser's own drag and drop."""
    cards = seeded.some(THINGS, 4)
    columns = seeded.some(("Open", "Running", "Finished"), 3)
    card, column = seeded.one(*cards), seeded.one(*columns)
    shown = "".join(
        f"<p draggable=true role=button tabindex=0 style='padding:8px;border:1px solid'>{name}</p>"
        for name in cards
    )
    targets = "".join(
        f"<section data-name={name} style='width:180px;height:120px;border:1px solid;"
        f"display:inline-block'><button>{name}</button></section>"
        for name in columns
    )
    counted(site)
    site.add(
        "/", page("Board", f"<h1>Board</h1>{shown}{targets}<p id=out></p>", script=SEND + DROP)
    )
    return Assignment(
        f'Drag "{card}" to "{column}" on the board at {site.url}/.',
        [Open(f"{site.url}/"), Drag(card, column), Find("out", "Sent")],
        lambda answer: site.state["pressed"] == [f"{card} to {column}"],
    )


SLIDE = read_script("slide")


@bench_task("slider", kind="drag")
def slider(site: Site, seeded: Seeded) -> Assignment:
    """Drag a knob by pointer events, then save its level."""
    level, save = seeded.number(3, 8), seeded.one("Save", "Set")
    name = seeded.one("Volume", "Brightness")
    counted(site)
    site.add(
        "/",
        page(
            "Level",
            f"<h1>{name}</h1><div style='position:relative;height:60px;width:340px'>"
            f"<div id=knob role=slider aria-label={name} tabindex=0 style='position:absolute;"
            "left:0;width:40px;height:60px;background:#36c;touch-action:none'></div></div>"
            "<p id=at>Level 0</p><p id=out></p>"
            f"<button onclick=\"send(document.getElementById('at').textContent)\">{save}</button>",
            script=SEND + SLIDE,
        ),
    )
    return Assignment(
        f'Drag the knob "{name}" at {site.url}/ to the level {level} (30 pixels a level) and save.',
        [
            Open(f"{site.url}/"),
            Drag(name, by=(level * 30, 0)),
            Find("at", f"Level {level}"),
            Press(save, "button"),
            Find("out", "Sent"),
        ],
        lambda answer: site.state["pressed"] == [f"Level {level}"],
    )


KEYS = read_script("keys")


@bench_task("keys", kind="keys")
def keys(site: Site, seeded: Seeded) -> Assignment:
    """A list that takes the arrow keys and Enter alone."""
    rows = seeded.some(THINGS, 7)
    down = seeded.number(2, 6)
    name = seeded.one("Choices", "Entries")
    listed = "".join(f"<div style='padding:4px'>{row}</div>" for row in rows)
    counted(site)
    site.add(
        "/",
        page(
            "Keys",
            f"<h1>Keys</h1><div id=list role=listbox aria-label={name} tabindex=0"
            f" style='width:200px;border:1px solid'>{listed}</div><p id=now></p><p id=out></p>",
            script=SEND + KEYS,
        ),
    )
    return Assignment(
        f'At {site.url}/ choose entry number {down} of "{name}" with the arrow keys and Enter.',
        [
            Open(f"{site.url}/"),
            Press(name, "listbox|select|combobox"),
            Keys("ArrowDown", down),
            Find("now", f"On {rows[down - 1]}"),
            Keys("Enter"),
            Find("out", "Sent"),
        ],
        lambda answer: site.state["pressed"] == [rows[down - 1]],
    )
