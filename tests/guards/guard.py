"""A protection of the product, its removal, and the test that fails without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.guards.mutation import Mutation


@dataclass(frozen=True)
class Guard:
    """A protection and the test that notices its removal, by mutations of the code or by SQL.

    `failing_test` is the id of the test that must fail without the protection, on `databases`;
    `promise` says what holds while it is there, where the test's name alone does not. `statements`
    are run in the migrated test database, by its name.
    """

    name: str
    failing_test: str
    databases: tuple[str, ...]
    mutations: tuple[Mutation, ...] = ()
    statements: Mapping[str, str] = field(default_factory=dict)
    promise: str = ""
