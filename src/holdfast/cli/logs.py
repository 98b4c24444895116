"""How commands that run for long write their log: to standard error, for people or for machines.

Messages are constant; what varies is in fields, under ``extra={"fields": {...}}``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

Format = Literal["text", "json"]
FORMATS: Final = ("text", "json")


def configure(form: Format, *, level: int = logging.INFO) -> None:
    """Send every log of this process to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if form == "json" else _Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


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
