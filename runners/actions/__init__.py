"""The browser actions of S1 §4.2 for every kind of browser: names, parameters, results, limits,
timeouts, error codes and retry rules. `runners.browser.actions` performs them on the worker's
browser, `runners.paired_browser` in a paired one.
"""
