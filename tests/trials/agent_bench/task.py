"""A task of the benchmark, and the words of its site, which a seed varies."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.trials.agent_bench.site import Site
from tests.trials.agent_bench.solver.intents import Intent

Item = TypeVar("Item")
SCRIPTS = Path(__file__).parent / "tasks" / "scripts"
FIRST = ("Ada", "Bo", "Chen", "Dora", "Emil", "Fatima", "Goran", "Hana", "Ivo", "Jun")
LAST = ("Lovelace", "Novak", "Okafor", "Petrov", "Quispe", "Rossi", "Sato", "Tan", "Urban", "Weiss")
THINGS = ("chair", "table", "lamp", "shelf", "mirror", "carpet", "clock", "vase", "stool", "desk")
COLOURS = ("red", "blue", "green", "white", "black", "grey", "brown", "yellow")
CITIES = ("Oslo", "Lima", "Porto", "Kyoto", "Accra", "Quito", "Turin", "Ghent", "Riga", "Perth")


class Seeded:
    """Choose labels, order, ids and values by a seed: the same seed gives the same site."""

    def __init__(self, name: str, seed: int) -> None:
        self.random = random.Random(f"{name} {seed}")

    def one(self, *choices: Item) -> Item:
        """Return one of the choices."""
        return self.random.choice(choices)

    def some(self, choices: Sequence[Item], count: int) -> list[Item]:
        """Return different choices in random order."""
        return self.random.sample(list(choices), count)

    def order(self, *parts: str) -> str:
        """Join the parts in random order."""
        return "".join(self.some(parts, len(parts)))

    def number(self, low: int, high: int) -> int:
        """Return a number, both ends included."""
        return self.random.randint(low, high)

    def code(self, length: int = 6) -> str:
        """Return a code of capital letters and digits that cannot be guessed."""
        letters = string.ascii_uppercase.replace("O", "").replace("I", "") + "23456789"
        return "".join(self.random.choice(letters) for _ in range(length))

    def id(self) -> str:
        """Return an id for an element or a field."""
        return f"{self.one('f', 'x', 'field', 'c', 'el')}{self.number(100, 9999)}"

    def person(self) -> str:
        """Return a full name."""
        return f"{self.one(*FIRST)} {self.one(*LAST)}"

    def mail(self) -> str:
        """Return an e-mail address."""
        return f"{self.one(*FIRST).lower()}{self.number(10, 99)}@example.org"


@dataclass(frozen=True)
class Assignment:
    """What one site asks of the agent.

    Attributes:
        goal: the goal of the run; `{url}` is the site's address.
        intents: what a person would do, for the scripted model: labels, no addresses of the site's
            inside, no ids.
        check: whether the goal was reached, from the answer and the site's own state.
    """

    goal: str
    intents: Sequence[Intent]
    check: Callable[[str], bool]


Build = Callable[[Site, Seeded], Assignment]


@dataclass(frozen=True)
class BenchTask:
    """One of the forty tasks."""

    name: str
    kind: str
    build: Build


TASKS: dict[str, BenchTask] = {}


def bench_task(name: str, *, kind: str) -> Callable[[Build], Build]:
    """Register a task; the decorated function adds its pages to a site."""

    def register(build: Build) -> Build:
        if name in TASKS:
            raise ValueError(f"two tasks are named {name}")
        TASKS[name] = BenchTask(name, kind, build)
        return build

    return register


def read_script(name: str) -> str:
    """Return a script for a page."""
    return (SCRIPTS / f"{name}.js").read_text()


def has_word(answer: str, word: object) -> bool:
    """Return whether the answer has this word or number as a whole."""
    answer = re.sub(r"(?<=\d)[,'](?=\d{3}\b)", "", answer)  # between thousands
    text = "".join(c if c.isalnum() or c in "-.@" else " " for c in answer)
    return str(word) in [part.strip(".-") for part in text.split()]
