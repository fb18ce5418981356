"""Detection of risky requests in messages by rules for English and Chinese, without a model.

`parsing` splits a message into clauses and quotations; `english` and `chinese` decide which actions
are requested rather than asked about, forbidden or narrated, and which of them are risky;
`commands` matches shell commands and SQL.
"""
