"""The validated address is the address that Chromium opens."""

from __future__ import annotations

import pytest

from runners.errors import InvalidTarget
from runners.network.address import check_address
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer

PARSE = "(texts) => texts.map((text) => URL.canParse(text) ? new URL(text).href : null)"


def parsed_by_chromium(
    reader: Reader, page_server: PageServer, urls: list[str]
) -> list[str | None]:
    """Return the browser's parse of each address; null where it is invalid."""

    async def parse() -> list[str | None]:
        async with reader.session.tab() as tab:
            await tab.page.goto(page_server.url("/plain"))
            parsed: list[str | None] = await tab.page.evaluate(PARSE, urls)
            return parsed

    return reader.wait(parse())


def test_chromium_parses_a_validated_address_as_the_validator_does(
    reader: Reader, page_server: PageServer
) -> None:
    urls = [
        "HTTP://Example.TEST:80/a/b?c=d#e",
        "http://127.1/",
        "http://0x7f.1/",
        "http://017700000001/",
        "http://2130706433:8080/",
        "http://0300.0250.257/",
        "http://1.2.3.4./",
        "http://[0:0::FFFF:7f00:1]/",
        "http://[64:ff9b::1.2.3.4]/",
        "http://bücher.example/ü?q=中文#ß",
        "http://BÜCHER.example/",
        "http://xn--bcher-kva.example/",
        "http://faß.de/",
        "http://σς.example/",
        "http://❤.example/",
        "https://例え.テスト/",
        "http://foo_bar.example.com/%7e/?a='b'",
        "http://a.example/{x}|y^z`",
        "http://a.example/a\\b?c\\d",
        "http://example.test.?x",
    ]
    allowed = [url for url in urls if "\\b" not in url]
    checked = [check_address(url, "local") for url in allowed]
    assert parsed_by_chromium(reader, page_server, checked) == parsed_by_chromium(
        reader, page_server, allowed
    )


@pytest.mark.parametrize(
    "url",
    ["http://ⓛocalhost/", "http://127。0。0。1/", "http://%6c%6fcalhost/", "http:\\\\127.0.0.1/"],
)
def test_an_address_that_chromium_would_rewrite_to_another_host_is_rejected(
    reader: Reader, page_server: PageServer, url: str
) -> None:
    (rewritten,) = parsed_by_chromium(reader, page_server, [url])
    assert rewritten in ("http://localhost/", "http://127.0.0.1/")
    with pytest.raises(InvalidTarget):
        check_address(url, "local")
