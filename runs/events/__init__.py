"""A run's log: its types of events, and how everybody who follows it hears of them."""
