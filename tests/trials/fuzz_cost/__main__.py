"""`python -m tests.trials.fuzz_cost [SECONDS] [NAME]`: search for costly inputs of each parser.

Searches each for SECONDS (30). Prints a Markdown table, and exits with 1 if a parser takes too long
for an accepted input (`tests.trials.fuzz_cost.costs.Cost.is_too_high`).
"""

from __future__ import annotations

import os
import sys

import django


def main() -> int:
    """Search and report."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from tests.trials.fuzz_cost.costs import worst_cost
    from tests.trials.fuzz_cost.parsers import PARSERS

    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    failed = 0
    print("| parser | input, KB | ms | pause, ms | grows as size^ | the most costly input |")
    print("|---|---|---|---|---|---|")
    for parser in PARSERS:
        if only not in parser.name:
            continue
        cost = worst_cost(parser, seconds=seconds)
        is_failed = cost.is_too_high(parser)
        failed += is_failed
        kilobytes = cost.size_bytes / 1024
        print(
            f"| {parser.name} | {kilobytes:.0f} | {cost.ms:.1f}{' TOO LONG' if is_failed else ''}"
            f" | {cost.pause_ms:.0f} | {cost.power:.1f} | {cost.shape[:90]} |",
            flush=True,
        )
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
