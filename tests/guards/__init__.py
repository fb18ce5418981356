"""Guards: protections that `make guards` removes one by one, each with the test that must fail."""
