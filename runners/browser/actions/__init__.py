"""The browser actions of S1 on the worker's browser, one file each: for agents, on a task's
tab, by clickId or XPath. `runners.actions` has their parameters and results.

The browser tools of S0, which templates and hosts use, are in `runners.browser.tools`.
"""
