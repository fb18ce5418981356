"""Tools that runners publish, as callers and language models see them."""
