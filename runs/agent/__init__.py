"""The agent: a model's turns and its tool calls as steps of a durable run.

`loop` decides which step comes next and performs it; `prompt` builds the model's messages from the
journal; `tools` and `remote_tools` list the tools that the model may call; `answer_check` validates
its answer. The template that uses them is `runs.task_templates.builtin.agent_task`.
"""
