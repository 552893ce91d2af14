"""The log on standard error: one JSON object a line, or lines for a person.

Lines of libraries that use the standard `logging` go the same way, in the same form. Only the entry point configures.
"""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog
from structlog.typing import Processor

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
Level = Literal["debug", "info", "warning", "error"]
Format = Literal["json", "console"]


def configure_log(level: Level, form: Format) -> None:
    """Sets where log lines go, in which form, and from which level on; may be called again to change them."""
    common: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*common, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *common],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(form)],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    for noisy in ("asyncio", "httpx", "httpcore", "httpcore2", "qdrant_client"):  # say at debug what they did for whom
        logging.getLogger(noisy).setLevel(max(LEVELS[level], logging.WARNING))


def _rendering(form: Format) -> list[Processor]:
    if form == "console":
        # The traceback that structlog would choose shows local variables: questions, passages, keys.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
