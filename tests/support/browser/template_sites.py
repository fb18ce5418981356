"""Sites for the templates that work on one page: a product list, a search, a contact form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from tests.support.browser.page_server import Page, PageResponse, PageServer, html

if TYPE_CHECKING:
    from runs.models import Run  # the soak uses these sites before Django is set up
RunTemplate = Callable[..., "Run"]
HEAD = "<!doctype html><html><head><meta charset=utf-8>"


def query_number(query: str, name: str, default: int = 1) -> int:
    """Return a number from a query string."""
    return int(parse_qs(query).get(name, [str(default)])[0])


def listing(last: int, *, repeats: bool = False, fails_at: int = 0) -> Page:
    """Return a function that serves the pages ?p=1 to `last`, each with a link to the next.

    With `repeats`, pages after the last repeat its items and link on. The page `fails_at` never
    responds.
    """

    def page(query: str) -> PageResponse:
        number = query_number(query, "p")
        if number == fails_at:
            return html("<title>late</title>", delay=3600.0)
        page_number = min(number, last)
        items = "".join(
            f"<li><a href=/item/{page_number}-{n}>Item {page_number}-{n}</a>" for n in range(5)
        )
        has_next = number < last or repeats
        link = f"<a id=next href='?p={number + 1}'>Next page</a>" if has_next else ""
        return html(f"{HEAD}<title>List {page_number}</title><h1>Goods</h1><ul>{items}</ul>{link}")

    return page


SCRIPTED_LIST = f"""{HEAD}<title>Feed</title><h1>Feed</h1><div id=list></div>
<button id=more>下一页</button><script>
let page = 0;
const show = () => {{ page += 1;
  setTimeout(() => {{
    list.innerHTML = [1, 2, 3].map((n) => `<p>第${{page}}页 文章${{n}}</p>`).join("");
    if (page >= 3) more.disabled = true;
  }}, 700);
}};
more.addEventListener("click", show); show();
</script>"""

SEARCH = f"""{HEAD}<title>Search</title><div id=app></div><script>
setTimeout(() => {{
  app.innerHTML = `<form id=f>
    <input type=search placeholder="Search articles"><button>Search</button></form>
    <ul id=results></ul>`;
  app.querySelector("input").addEventListener("keyup", () => {{ app.dataset.typed = 1; }});
  f.addEventListener("submit", async (event) => {{
    event.preventDefault();
    if (!app.dataset.typed) return;
    const found = await (await fetch("/api/find?q=" + f.elements[0].value)).json();
    setTimeout(() => {{
      results.innerHTML = found.map((item) =>
        `<li class=result><a target=_blank href="${{item.url}}">${{item.title}}</a></li>`).join("");
    }}, 300);
  }});
}}, 150);
</script>"""


def search_results(query: str) -> PageResponse:
    """Return a search result page with two articles about the search term."""
    words = parse_qs(query).get("q", [""])[0]
    text = (
        f'[{{"title": "All about {words}", "url": "/article"}},'
        f' {{"title": "{words} for beginners", "url": "/article?n=2"}}]'
    )
    return PageResponse(text.encode(), mime="application/json", delay=0.2)


FORM = f"""{HEAD}<title>Contact</title><h1>Write to us</h1><form id=f action=/sent method=post>
<p><label for=name>Your name</label> <input id=name name=name required>
<p><label for=mail>E-mail</label> <input id=mail name=mail type=email>
<p><label for=topic>Topic</label> <select id=topic name=topic><option>Sales<option>Support</select>
<p><label for=day>Day</label> <input id=day name=day type=date>
<p><label><input type=checkbox name=copy> Send me a copy</label>
<p><label for=text>Message</label> <textarea id=text name=text></textarea>
<p><button id=send>Send</button> <button id=off type=button disabled>Send later</button>
</form><script>
f.addEventListener("input", (event) => {{
  if (event.isTrusted) f.dataset.trusted = (f.dataset.trusted ?? "") + event.target.id + ";";
}});
</script>"""

REFUSING = FORM.replace(
    "</script>",
    """
f.addEventListener("submit", (event) => {
  event.preventDefault();
  const field = document.querySelector("#mail");
  field.setAttribute("aria-invalid", "true");
  field.insertAdjacentHTML("afterend", "<span id=why>This address is taken.</span>");
  field.setAttribute("aria-describedby", "why");
});
</script>""",
)


@dataclass
class Site:
    """The sites of a test's server, and the requests that it received."""

    server: PageServer

    def open(self) -> Site:
        """Add the pages to the server."""
        pages: dict[str, Page | str] = {
            "/list": listing(4),
            "/circle": listing(3, repeats=True),
            "/late": listing(5, fails_at=3),
            "/feed": SCRIPTED_LIST,
            "/search": SEARCH,
            "/api/find": search_results,
            "/article": f"{HEAD}<title>Article</title><h1>The article</h1><p>Read me to the end.",
            "/contact": FORM,
            "/refusing": REFUSING,
            "/lost": FORM.replace("action=/sent", "action=/never"),
            "/crashing": FORM.replace("action=/sent", "action=/broken"),
            "/sent": f"{HEAD}<title>Thanks</title><h1>Thank you</h1><p>We got your message.",
        }
        for path, page in pages.items():
            self.server.add(path, page)
        return self

    def url(self, path: str) -> str:
        """Return the URL of a page."""
        return self.server.url(path)


def by_text(query: str) -> dict[str, str]:
    """Return a locator by text."""
    return {"mode": "semantic", "query": query}


def by_selector(selector: str) -> dict[str, str]:
    """Return a locator by selector."""
    return {"mode": "selector", "selector": selector}
