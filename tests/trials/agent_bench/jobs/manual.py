"""PostgreSQL's manual as HTML files: serve it, and read the right answers from the files."""

from __future__ import annotations

import functools
import html
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TWENTY = (
    *("acronyms", "btree", "datatype-boolean", "ddl-constraints", "dml-returning"),
    *("event-triggers", "functions-json", "gin", "indexes-partial", "logical-replication"),
    *("mvcc-intro", "performance-tips", "plpgsql-cursors", "queries-with", "rowtypes"),
    *("sql-vacuum", "textsearch", "tutorial-window", "view-pg-stats", "wal-intro"),
)
COMPARED = ("sql-createtable", "sql-checkpoint", "sql-listen")
SECTIONS = ("Compatibility", "Examples", "Notes")
COMMANDS = (
    *("abort", "alteraggregate", "analyze", "begin", "call", "checkpoint", "close", "cluster"),
    *("comment", "commit", "copy", "createindex", "deallocate", "discard", "do", "explain"),
    *("grant", "listen", "lock", "merge", "notify", "reindex", "truncate", "vacuum"),
)
WITH_PARAMETERS = ("sql-createindex", "sql-createview", "sql-createsequence")


class Manual:
    """The files of the manual."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _read(self, name: str) -> str:
        return (self.folder / f"{name}.html").read_text("utf-8")

    def title(self, name: str) -> str:
        """Return the title of a page."""
        return words(self._between(name, "<title>", "</title>"))

    def has_section(self, name: str, section: str) -> bool:
        """Return whether a page has a section with this heading."""
        return any(
            words(h) == section for h in re.findall(r"<h2[^>]*>(.*?)</h2>", self._read(name))
        )

    def purpose(self, command: str) -> str:
        """Return what a command is for: the line under its name."""
        line = words(self._between(f"sql-{command}", '"refnamediv">', "</p>").rpartition("<p>")[2])
        return line.partition(" — ")[2]

    def describes(self, name: str, parameter: str) -> bool:
        """Return whether a page lists a parameter."""
        return any(words(term) == parameter for term in self._terms(name))

    def count_parameters(self, name: str) -> int:
        """Return how many parameters a page lists."""
        return len(self._terms(name))

    def _terms(self, name: str) -> list[str]:
        return re.findall(r"<dt.*?>(.*?)</dt>", self._read(name), re.DOTALL)

    def conditions(self, error_class: str) -> list[str]:
        """Return the condition names of a class of error codes."""
        rows = re.findall(rf">{error_class}\w{{3}}</code>.*?symbol\">(\w+)<", self._errcodes())
        return [str(row) for row in rows]

    def error_code(self, condition: str) -> str:
        """Return the code of a condition."""
        rows = re.findall(
            r"literal\">(\w{5})</code></td><td><code class=\"symbol\">(\w+)<", self._errcodes()
        )
        return next(str(code) for code, name in rows if name == condition)

    def _errcodes(self) -> str:
        return self._read("errcodes-appendix")

    def default_of(self, page: str, parameter: str) -> str:
        """Return the sentence that says a parameter's default."""
        text = words(self._between(page, f'varname">{parameter}</code> (', "</dd>"))
        found = re.search(r"The default (?:value )?is ([^.]*)\.", text)
        assert found is not None, text
        return found[1]

    def _between(self, name: str, start: str, end: str) -> str:
        return self._read(name).partition(start)[2].partition(end)[0]


def words(markup: str) -> str:
    """Return the words of HTML without tags, with single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", markup)).split())


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serve_manual(folder: Path) -> Iterator[str]:
    """Serve the files for the length of the block; yield the address of the folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
