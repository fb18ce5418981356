"""Infrastructure without product terms: ids, clocks, threads, Redis, prepared statements."""
