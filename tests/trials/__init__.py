"""Programs that try the product for longer than a test may, a folder each, and their own tests."""
