"""The one road of a tool call, from its request to its answer.

A step's call (of a template, or of the agent) enters at `step_call`, a call over REST or MCP at
`direct.call`, an action of an agent host at `direct.browser_actions`, which submits a run for it.
Calls of a runner's tools go the same road. Each stage is a module; the step's calls read top to
bottom in `step_call`, the direct ones in `direct.call`.

stage    module                           reads                        writes
request  request                          inputs of the step or caller -
policy   policy, browser_policy,          rules, confirmations, what   a denial; that an approval is
         page, shown_page                 the page says of an element  used; a confirmation suspends
                                                                       the run, or is the answer
target   target, uploads                  targets, paired browsers     -
start    start, step_start                the lease; whether policy,   the call in flight and its
                                          target and page are as read  audit event `tool.called`
invoke   runners.invocation               the tool's arguments         artifacts
record   record                           the tool's result            the audit event of the end
answer   step_call; in direct: call,      the outcome under a key      the outcome under a key;
         idempotency, refusals, as_run                                 a refusal

Beside the road: `attempt` (what a step's calls are made with, and what they leave), `information`
(what a person sees beside a call's arguments, and which calls policy rules can be about) and
`direct.catalogue` (which tools a caller may call). The end of a call whose process records none is
written where the lease of its run ends (`runs.lifecycle.in_flight_calls`).

From its entry to its answer a call walks at most five packages: `runs.execution` or the transport,
`runs.calls`, `decisions.authorization`, `runners.targets`, `runners.invocation`.
"""
