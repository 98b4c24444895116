"""How commands that run for long write their log: to standard error, for people or for machines.

Messages are constant; what varies is in fields, under ``extra={"fields": {...}}``.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

Format = Literal["text", "json"]
FORMATS: Final = ("text", "json")


def configure(form: Format, *, level: int = logging.INFO) -> None:
    """Send every log of this process to standard error."""
    handler = _Handler()
    handler.setFormatter(_Json() if form == "json" else _Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


class _Handler(logging.StreamHandler[TextIO]):
    """Writes lines above what a command shows at the end of a terminal (`above`)."""

    def __init__(self) -> None:
        super().__init__()
        self.erase: Callable[[], None] | None = None
        self.redraw: Callable[[], None] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.erase is not None:
            self.erase()
        super().emit(record)
        if self.redraw is not None:
            self.redraw()


@contextlib.contextmanager
def above(erase: Callable[[], None], redraw: Callable[[], None]) -> Iterator[None]:
    """Until the block ends, have what is shown at the end of the terminal erased before a log line, and drawn after."""
    handlers = [each for each in logging.getLogger().handlers if isinstance(each, _Handler)]
    for each in handlers:
        each.erase, each.redraw = erase, redraw
    try:
        yield
    finally:
        for each in handlers:
            each.erase = each.redraw = None


class _Json(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _instant(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Text(logging.Formatter):
    """One line, and a traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f"  {name}={json.dumps(value, default=str)}" for name, value in _fields(record).items())
        when = _instant(record).strftime("%H:%M:%S")
        line = f"{when} {record.levelname.lower():<7} {record.getMessage()}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _instant(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, tz=UTC)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, Mapping) else {}
