"""The browser tools of S0, one file each: for templates and hosts, on the run's tab, by locator.

The browser actions of S1, which agents use, are in `runners.browser.actions`.
"""
