"""How far a caller is trusted (docs/trust.md)."""

from __future__ import annotations

from typing import Literal

TrustLevel = Literal["local", "remote"]
