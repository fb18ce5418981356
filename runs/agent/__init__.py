"""The agent: how a model's turns and the tools that it calls become steps of a durable run.

`loop` says what comes next and does it; `context` makes of the journal what the model is told;
`tools` are those that it sees; `verify` judges its answer. The template is
`runs.task_templates.builtin.agent_task`.
"""
