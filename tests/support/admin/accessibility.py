"""What is wrong with a page for people who use a keyboard, a screen reader or a phone."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from tests.support.admin.visitor import Visitor

AXE = files("axe_playwright_python") / "axe.min.js"
SERIOUS = ("serious", "critical")
# Only the rules whose findings can be serious, without fetching the style sheets again (which an
# experimental rule needs), and not on each row of a long list.
_RUN = """
async (impacts) => {
  const isWanted = (rule) => rule.enabled && !rule.tags.includes("experimental")
    && (!rule.impact || impacts.includes(rule.impact));
  const values = axe._audit.rules.filter(isWanted).map((rule) => rule.id);
  const options = {resultTypes: ["violations"], runOnly: {type: "rule", values}, preload: false};
  const results = await axe.run({exclude: [["#result_list tbody:nth-of-type(n + 13)"]]}, options);
  return results.violations
    .filter((one) => impacts.includes(one.impact))
    .map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 160))]);
}
"""
_CUT = """
() => [...document.querySelectorAll("#content *, header *")].filter((one) => {
  const box = one.getBoundingClientRect();
  if (!box.width || box.right <= innerWidth + 1 || !one.checkVisibility()) return false;
  if (one.closest("[x-cloak], #nav-sidebar, #changelist-filter")) return false;
  for (let around = one.parentElement; around; around = around.parentElement) {
    const overflow = getComputedStyle(around).overflowX;
    if (["auto", "scroll"].includes(overflow)) return false;
    const right = around.getBoundingClientRect().right;
    if (overflow !== "visible" && right <= innerWidth + 1) return false;
  }
  return true;
}).slice(0, 5).map((one) => one.outerHTML.slice(0, 120))
"""


def serious_findings(visitor: Visitor) -> list[str]:
    """Return what axe-core calls serious or critical on the open page."""
    visitor.do(visitor.page.evaluate(AXE.read_text()))
    found: list[Any] = visitor.do(visitor.page.evaluate(_RUN, list(SERIOUS)))
    return [f"{rule}: {nodes[:3]}" for rule, nodes in found]


def elements_outside(visitor: Visitor) -> list[str]:
    """Return elements that the right edge of the window cuts, where nothing scrolls to them."""
    cut: list[str] = visitor.do(visitor.page.evaluate(_CUT))
    wide = "document.documentElement.scrollWidth > innerWidth + 1"
    is_wide: bool = visitor.do(visitor.page.evaluate(wide))
    return [*cut, *(["the page is wider than its window"] if is_wide else [])]
