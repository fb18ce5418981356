"""The gateway to language models: types and Protocol (`base`), two providers (`openai_compatible`,
`anthropic_messages`), and retries, limits and costs (`gateway`).

The module of a provider, and with it the provider's library, is imported when an agent first runs.
"""
