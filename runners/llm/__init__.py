"""The gateway to language models: one Protocol (`base`), two ways to speak (`openai_compatible`,
`anthropic_messages`), one place for retries, limits and money (`gateway`).

Nothing here is imported before an agent runs; the libraries of the providers are imported last.
"""
