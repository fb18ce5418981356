"""The browser actions (S1 §4.2) for every kind of browser: names, parameters, results, limits,
timeouts, error codes and retry rules; and what they share: own pages, files, marks of page texts.

`runners.browser.actions` performs them on the worker's browser, the extension in a paired one
(`runners.paired_browser`). Tools (S0) are in `runners.tools`.
"""
