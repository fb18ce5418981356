"""What kind of action a message asks for, read by rules in English and Chinese: no model, no
service.

`reading` says which clauses are asked for now rather than asked about, forbidden, told or quoted;
`english` and `chinese` say what is risky; `commands` knows shells and SQL.
"""
