"""Invocation of a tool or action: validate its arguments, limit its time, call it here, on a runner
or in a paired browser, report the result.
"""
