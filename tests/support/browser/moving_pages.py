"""Pages that change at every moment of a click: hostile ones, and ordinary ones that only move.

A hostile page has the button `Keep`; whatever else is clicked requests /wrong/ and what it did.
"""

from __future__ import annotations

from itertools import product

# What a hostile page does.
CHANGES = {
    "move": "keep.style.left = '400px'; wrong.style.left = '100px'",
    "swap": "box.append(keep); box.prepend(wrong); keep.style.left = '400px';"
    " wrong.style.left = '100px'",
    "cover": "wrong.style.left = '100px'; wrong.style.zIndex = 9",
    "frame": "frame.style.left = '80px'",
    "new frame": "box.append(newFrame())",
    "rename": "keep.textContent = 'Delete'; form.action = '/wrong/rename'",
    "navigate": "location.assign('/next')",
}
# When it does it.
MOMENTS = {
    "pointermove": "addEventListener('pointermove', change, true)",
    "pointerdown": "addEventListener('pointerdown', change, true)",
    "mousedown": "keep.addEventListener('mousedown', change)",
    "after the move": "addEventListener('pointermove',"
    " () => setTimeout(change, Math.random() * 25))",
    "next frame": "addEventListener('pointermove', () => requestAnimationFrame(change))",
    "now and then": "setInterval(() => Math.random() < .3 && change(), 5)",
}
HOSTILE = list(product(CHANGES, MOMENTS))
NEXT = """<!doctype html><title>Next</title><button style="position:fixed;inset:0;width:100%;
height:100%" onclick="fetch('/wrong/navigate')">Delete</button>"""
_HOSTILE_PAGE = """<!doctype html><title>Hostile</title><style>
button, iframe { position: absolute; left: 100px; top: 100px; width: 200px; height: 60px }
#wrong, iframe { left: 5000px } iframe { z-index: 9; border: 0; opacity: .01 }
</style><form id=form action=javascript:void(0)><div id=box>
<button id=keep type=button>Keep</button>
<button id=wrong type=button>Delete</button></div></form>
<iframe id=frame src="FRAME"></iframe><script>
addEventListener("click", ({target}) => {
  const isWrong = target !== keep || keep.textContent !== "Keep";
  if (isWrong) fetch("/wrong/CHANGE_NAME", {keepalive: true});
}, true);
const newFrame = () => Object.assign(document.createElement("iframe"),
  {src: "FRAME", style: "left: 80px", className: "new"});
const reset = () => {
  document.querySelectorAll(".new").forEach((one) => one.remove());
  keep.textContent = "Keep"; form.action = "javascript:void(0)";
  box.append(keep, wrong);
  for (const one of [keep, wrong, frame]) one.removeAttribute("style");
};
let isOn = false;
const change = () => { if (isOn) { CHANGE } };
MOMENT</script>"""


def hostile_page(change: str, moment: str, frame: str) -> str:
    """Return a page with the button `Keep`, which does this at this moment while `isOn`."""
    page = _HOSTILE_PAGE.replace("CHANGE_NAME", change.replace(" ", "_")).replace(
        "CHANGE", CHANGES[change]
    )
    return page.replace("MOMENT", MOMENTS[moment]).replace("FRAME", frame)


# Ordinary pages that move, around a button `Buy` that stays what it is, or a link that counts.
_BUY = "<p><button id=buy>Buy</button></p>"
_MOVING = {
    "carousel": (
        "<div style='overflow:hidden;height:90px'><div id=s style='transition:transform .4s'>"
        + "".join(f"<p>Slide {at} <a href='#{at}'>More</a></p>" for at in range(5))
        + "</div></div>",
        "let n = 0; setInterval("
        "() => {s.style.transform = `translateY(${-90 * (n++ % 5)}px)`}, SPEED)",
    ),
    "ticker": (
        "<marquee>News of the day, one after another</marquee><p id=t>0</p>",
        "setInterval(() => {t.textContent = Math.random()}, SPEED)",
    ),
    "clock": (
        "<p id=c></p>",
        "setInterval(() => {c.textContent = new Date().toISOString()}, SPEED)",
    ),
    "sticky header": (
        "<header style='position:sticky;top:0;background:#eee'>Shop</header>"
        "<div style='height:900px'></div>",
        "setInterval(() => scrollBy(0, scrollY > 300 ? -300 : 40), SPEED)",
    ),
    "rendered list": (
        "<ul id=l></ul>",
        "setInterval(() => {l.innerHTML = [1,2,3].map((n) =>"
        " `<li>${n}: ${Math.random()} <button>Remove</button></li>`).join('')}, SPEED)",
    ),
    "counter in a link": (
        "<a id=buy href=/inbox>Inbox</a>",
        "let k = 0; const count = () => {buy.textContent = `Inbox (${k++})`}; count();"
        " setInterval(count, SPEED)",
    ),
    "animation": (
        "<style>@keyframes p{50%{transform:scale(1.3)}}i{display:inline-block;animation:p SPEEDms"
        " infinite}</style><p><i>★</i> <i>★</i></p>",
        "",
    ),
    "toasts": (
        "<div id=o style='position:fixed;right:0;top:0'></div>",
        "setInterval(() => {o.textContent = o.textContent ? '' : 'Saved'}, SPEED)",
    ),
    "late images": (
        "<div id=i></div>",
        "let m = 0; setInterval(() => {if (m++ < 4) i.insertAdjacentHTML('beforeend',"
        " '<p style=\"height:20px\">image</p>')}, SPEED)",
    ),
    "progress": (
        "<progress id=g max=100></progress>",
        "setInterval(() => {g.value = (g.value + 7) % 100}, SPEED)",
    ),
}
SPEEDS = (60, 150, 400, 900, 2000)
ORDINARY = list(product(_MOVING, SPEEDS))


def ordinary_page(kind: str, speed: int) -> str:
    """Return a page that moves in this way, every `speed` milliseconds."""
    markup, script = _MOVING[kind]
    used = "" if "id=buy" in markup else _BUY
    page = f"<!doctype html><title>Shop</title>{markup}{used}<script>{script}</script>"
    return page.replace("SPEED", str(speed))
