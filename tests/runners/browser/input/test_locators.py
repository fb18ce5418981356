"""Locators: which element a text or selector finds, in English and Chinese, in any part of a
page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from runners.browser.pool.runtime import BrowserRuntime
from runners.invocation.event_loop import LoopThread
from tests.support.browser.form_pages import CHINESE, ENGLISH, SHADOW
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer, serve_pages

# (words, purpose, id of the element that a person would choose, by which property)
IN_ENGLISH = [
    ("User name", "field", "user", "label"),
    ("username", "field", "user", "label"),
    ("user name field", "field", "user", "label"),
    ("Password", "field", "pass", "label"),
    ("the password input", "field", "pass", "label"),
    ("email", "field", "mail", "label"),
    ("E-Mail", "field", "mail", "label"),
    ("email address", "field", "mail", "label"),
    ("phone", "field", "phone", "placeholder"),
    ("mobile number", "field", "phone", "placeholder"),
    ("search products", "field", "q", "placeholder"),
    ("search", "field", "q", "placeholder"),
    ("search box", "field", "q", "placeholder"),
    ("Company", "field", "company", "text"),
    ("street", "field", "street", "text"),
    ("Country", "field", "country", "label"),
    ("country dropdown", "field", "country", "label"),
    ("accept the terms", "field", "terms", "label"),
    ("terms of service checkbox", "field", "terms", "label"),
    ("newsletter", "field", "letter", "label"),
    ("Express", "field", "fast", "label"),
    ("standard radio button", "field", "slow", "label"),
    ("date of birth", "field", "birth", "name"),
    ("message", "field", "note", "name"),
    ("comment", "field", "rich", "placeholder"),
    ("Create account", "clickable", "send", "text"),
    ("sign up", "clickable", "send", "text"),
    ("create account button", "clickable", "send", "text"),
    ("Save draft", "clickable", "save", "text"),
    ("save", "clickable", "save", "text"),
    ("clear form", "clickable", "reset", "name"),
    ("close", "clickable", "x", "text"),
    ("Home", "clickable", "home", "text"),
    ("latest news link", "clickable", "news", "text"),
    ("shopping cart", "clickable", "cart", "name"),
    ("help", "clickable", "help", "text"),
    ("sign in", "clickable", "signin", "text"),
    ("Login", "clickable", "signin", "text"),
    ("next page", "clickable", "next", "name"),
    ("previous", "clickable", "prev", "text"),
    ("Show details", "clickable", "pressed", "text"),
    ("company logo", "clickable", "logo", "name"),
    ("edit", "clickable", "r1", "text"),
    ("Ｓａｖｅ ｄｒａｆｔ", "clickable", "save", "text"),
]
IN_CHINESE = [
    ("用户名", "field", "user", "label"),
    ("账号", "field", "user", "label"),
    ("用户名输入框", "field", "user", "label"),
    ("密码", "field", "pass", "label"),
    ("登录密码", "field", "pass", "label"),
    ("邮箱", "field", "mail", "placeholder"),
    ("电子邮件", "field", "mail", "placeholder"),
    ("手机号", "field", "mobile", "placeholder"),
    ("验证码", "field", "code", "placeholder"),
    ("商品名称", "field", "q", "placeholder"),
    ("公司名称", "field", "company", "text"),
    ("收货地址", "field", "address", "text"),
    ("城市", "field", "city", "label"),
    ("服务条款", "field", "terms", "label"),
    ("女", "field", "woman", "label"),
    ("出生日期", "field", "birth", "name"),
    ("评论内容", "field", "rich", "name"),
    ("搜索", "clickable", "go", "text"),
    ("搜索按钮", "clickable", "go", "text"),
    ("查询", "clickable", "go", "text"),
    ("登录", "clickable", "login", "text"),
    ("注册", "clickable", "register", "text"),
    ("立即注册按钮", "clickable", "register", "text"),
    ("确定", "clickable", "ok", "text"),
    ("忘记密码", "clickable", "forgot", "text"),
    ("下一页", "clickable", "next", "text"),
    ("上一页链接", "clickable", "prev", "text"),
    ("查看详情", "clickable", "detail", "text"),
    ("加入购物车", "clickable", "basket", "text"),
    ("search", "clickable", "go", "text"),
    ("next page", "clickable", "next", "text"),
]
IN_PARTS = [
    ("nick name", "field", "nick", "label"),
    ("card holder", "field", "holder", "label"),
    ("pay now", "clickable", "pay", "text"),
    ("deep field", "field", "deep", "placeholder"),
    ("深处的链接", "clickable", "link", "text"),
    ("save", "clickable", "shsave", "text"),
]
CASES = [
    (page, *case)
    for page, cases in (("/en", IN_ENGLISH), ("/zh", IN_CHINESE), ("/parts", IN_PARTS))
    for case in cases
]
ID_OF_TARGET = "() => continuityTarget.id"


class Finder:
    """Find elements on the pages, which stay open from one case to the next."""

    def __init__(self, reader: Reader, server: PageServer) -> None:
        self.read, self.server = reader, server
        self.page = ""

    def show(self, page: str) -> None:
        if self.page != page:
            assert self.read.call("open_page", url=self.server.url(page)).ok
            self.page = page

    def find(
        self, page: str, locator: Mapping[str, Any], purpose: str = "any"
    ) -> tuple[str, Mapping[str, Any]]:
        """Return the id of the element, and its match."""
        self.show(page)
        result = self.read.call("find_element", locator=locator, purpose=purpose, timeoutMs=0)
        assert result.output is not None, result.error
        match: Mapping[str, Any] = result.output["match"]
        return self.read.wait(self._id()), match

    def miss(self, page: str, locator: Mapping[str, Any], purpose: str = "any") -> dict[str, Any]:
        """Return the error of a locator that finds nothing."""
        self.show(page)
        result = self.read.call("find_element", locator=locator, purpose=purpose, timeoutMs=0)
        assert result.error is not None, result.output
        return dict(result.error)

    async def _id(self) -> str:
        async with self.read.session.run_tab() as tab:
            return str(await tab.call(ID_OF_TARGET, None, lambda: 10.0))


@pytest.fixture(scope="module")
def finder(browser_loop: LoopThread, browser_runtime: BrowserRuntime) -> Iterator[Finder]:
    with serve_pages() as server:
        for path, markup in (("/en", ENGLISH), ("/zh", CHINESE), ("/parts", SHADOW)):
            server.add(path, markup)
        opening = browser_runtime.open_session(run_id="run_test", trust="local")
        session = browser_loop.submit(opening).result(30)
        yield Finder(Reader(browser_loop, session), server)
        browser_loop.submit(session.close()).result(30)


def semantic(query: str) -> dict[str, str]:
    return {"mode": "semantic", "query": query}


def selector(css: str) -> dict[str, str]:
    return {"mode": "selector", "selector": css}


@pytest.mark.parametrize(("page", "query", "purpose", "expected", "by"), CASES)
def test_a_text_finds_the_element_that_a_person_would_choose(
    finder: Finder, *, page: str, query: str, purpose: str, expected: str, by: str
) -> None:
    found, match = finder.find(page, semantic(query), purpose)
    assert (found, match["by"]) == (expected, by), match
    assert 0.5 <= match["score"] <= 1


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 60
    assert min(len(IN_ENGLISH), len(IN_CHINESE)) >= 25


@pytest.mark.parametrize(
    ("page", "query", "purpose"),
    [
        ("/en", "credit card number", "field"),
        ("/en", "zip code", "field"),
        ("/en", "print receipt", "clickable"),
        ("/en", "!!!", "any"),
        ("/en", "🚀", "clickable"),
        ("/zh", "身份证号码", "field"),
        ("/zh", "打印发票", "clickable"),
    ],
)
def test_a_text_without_a_matching_element_finds_nothing(
    finder: Finder, *, page: str, query: str, purpose: str
) -> None:
    error = finder.miss(page, semantic(query), purpose)
    assert (error["errorCode"], error["retryable"]) == ("ELEMENT_NOT_FOUND", True)
    assert error["details"]["reason"] == "no_match"
    assert error["details"]["candidates"], "an agent needs candidates to correct its call"
    assert query in error["message"]


@pytest.mark.parametrize(
    ("page", "locator", "purpose", "reason"),
    [
        ("/en", semantic("Delete account"), "clickable", "disabled"),
        ("/en", semantic("Download invoice"), "clickable", "hidden"),
        ("/en", semantic("old name"), "field", "disabled"),
        ("/en", semantic("customer number"), "field", "readonly"),
        ("/zh", semantic("提交订单"), "clickable", "disabled"),
        ("/en", selector("#off"), "clickable", "disabled"),
        ("/en", selector("#ghost"), "any", "hidden"),
        ("/en", selector("#fixed"), "field", "readonly"),
        ("/en", selector("h1.none"), "any", "no_match"),
        ("/en", selector("nav"), "field", "not_a_field"),
    ],
)
def test_an_unusable_element_is_not_chosen_and_the_reason_is_reported(
    finder: Finder, *, page: str, locator: dict[str, str], purpose: str, reason: str
) -> None:
    details = finder.miss(page, locator, purpose)["details"]
    assert details["reason"] == reason
    assert details["locator"] == locator


def test_of_equal_matches_the_first_of_the_document_is_chosen_and_their_number_reported(
    finder: Finder,
) -> None:
    found, match = finder.find("/en", semantic("edit"), "clickable")
    assert (found, match["equals"], match["score"]) == ("r1", 2, 1)
    found, match = finder.find("/parts", semantic("save"), "clickable")
    assert (found, match["equals"]) == ("shsave", 3)


def test_a_purpose_narrows_the_candidates(finder: Finder) -> None:
    assert finder.find("/zh", semantic("搜索"), "clickable")[0] == "go"
    assert finder.find("/zh", semantic("搜索"), "field")[0] == "q"


@pytest.mark.parametrize(
    ("page", "css", "purpose", "expected"),
    [
        ("/en", "input[type=checkbox]", "field", "terms"),
        ("/en", "label:has(#letter)", "field", "letter"),
        ("/parts", "#deep", "field", "deep"),
        ("/parts", "#pay", "clickable", "pay"),
        ("/parts", "button", "clickable", "first"),
        ("/zh", "[placeholder*=手机]", "field", "mobile"),
    ],
)
def test_a_selector_chooses_the_first_usable_element(
    finder: Finder, *, page: str, css: str, purpose: str, expected: str
) -> None:
    found, match = finder.find(page, selector(css), purpose)
    assert (found, match["by"], match["matched"]) == (expected, "selector", css)


@pytest.mark.parametrize("css", ["a[[", ">>", "div:has(", "::", "1"])
def test_an_invalid_selector_is_an_invalid_parameter(finder: Finder, css: str) -> None:
    assert finder.miss("/en", selector(css))["errorCode"] == "INVALID_PARAMETER"


def test_a_page_whose_fields_have_the_names_of_properties_is_still_searched(
    finder: Finder,
) -> None:
    traps = "".join(
        f"<input name={name}>" for name in ("elements", "labels", "parentNode", "querySelectorAll")
    )
    finder.server.add("/traps", f"<form>{traps}<label>Town <input id=town></label></form>")
    assert finder.find("/traps", semantic("town"), "field")[0] == "town"
    finder.page = ""


def test_a_search_without_an_open_page_is_a_failure(
    browser_loop: LoopThread, browser_runtime: BrowserRuntime
) -> None:
    opening = browser_runtime.open_session(run_id="run_test", trust="local")
    session = browser_loop.submit(opening).result(30)
    result = Reader(browser_loop, session).call("find_element", locator=semantic("x"))
    assert result.error is not None
    assert result.error["errorCode"] == "PAGE_CRASHED"
    browser_loop.submit(session.close()).result(30)
