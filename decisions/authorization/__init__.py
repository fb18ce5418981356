"""Authorization of tool calls: policy rules, confirmations and signed confirmation links."""
