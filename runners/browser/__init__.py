"""Chromium through Playwright: its process, sessions and pages, and what callers can do with them.

`tools` are the browser tools of S0 (`click_element`, on the run's tab); `actions` are the browser
actions of S1 (`browser_click`, on a task's tab) for this browser. Both share the other folders.
"""
