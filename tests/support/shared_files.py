"""Files beside the repository, on some machines only; tests that need them skip elsewhere."""

from __future__ import annotations

from pathlib import Path

SHARED = Path(__file__).parents[3] / "shared"
BAD_INPUTS = SHARED / "bad-inputs.jsonl"
