"""Structured logs: one JSON object per line."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON: time, level, logger, message, its fields, and the traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON without line breaks."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_as_json(level: str) -> None:
    """Log to stderr as JSON, from a level on: ``debug``, ``info``, ``warning`` or ``error``."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs whole addresses, whose paths may hold secrets
    logging.getLogger("httpcore").setLevel(logging.WARNING)
