"""Start Playwright's driver, a Node process, in a minimal environment."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from runners.child_environment import PROXIES, child_environment

if TYPE_CHECKING:
    from playwright.async_api import Playwright

# The default is for drivers that other code of this process starts.
_temp_folder: ContextVar[Path | None] = ContextVar("temp_folder", default=None)


async def start_driver(temp_folder: Path) -> Playwright:
    """Start a driver whose temporary files are in `temp_folder`; the caller stops it."""
    # Imported here because it is heavy: 0.2 s.
    from playwright._impl import transport
    from playwright.async_api import async_playwright

    # Playwright has no option for it. The function is replaced once, for all drivers of this
    # process, and reads the folder from the context of the task that starts the driver.
    transport.get_driver_env = _driver_environment  # type: ignore[attr-defined]
    reset = _temp_folder.set(temp_folder)
    try:
        return await async_playwright().start()
    finally:
        _temp_folder.reset(reset)


def browser_environment(**values: str) -> dict[str, str]:
    """Return the environment of a browser."""
    return child_environment("FONTCONFIG_*", *PROXIES, **values)


def _driver_environment() -> dict[str, str]:
    folder = _temp_folder.get()
    more = {} if folder is None else {"TMPDIR": str(folder)}
    return child_environment(**more, PW_LANG_NAME="python")
