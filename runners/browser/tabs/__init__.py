"""The tab of a call: the run's tab for tools, a task's tabs for actions; and what an action does
with its tab: choose the input device, number the elements, store downloads and other artifacts.
"""
