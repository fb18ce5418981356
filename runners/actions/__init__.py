"""The browser actions of S1 §4.2, independent of any browser: names, parameters, results, limits,
timeouts, error codes and retry rules.
"""
