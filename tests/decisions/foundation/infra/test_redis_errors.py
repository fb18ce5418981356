"""One function names what a Redis client raises, so that no part forgets one of them."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[4]
PARTS = ("config", "decisions", "artifacts", "runners", "runs", "mcp_server")
# The Celery application drops an item that is no message (ValueError), and has to raise the others.
NAMES_IT = {"decisions/foundation/infra/redis.py", "config/celery.py"}


def test_no_other_module_names_the_class_of_redis_errors() -> None:
    files = [file for part in PARTS for file in (ROOT / part).rglob("*.py")]
    found = {str(one.relative_to(ROOT)) for one in files if "RedisError" in one.read_text()}
    assert found == NAMES_IT
