"""The browser actions of S1 §4.2 as every kind of browser target has them: names, parameters,
results, thresholds, times, codes and what may be tried again. Nothing here knows a browser.
"""
