"""What can go wrong between a text and its tensors.

EncoderError
├── ModelError                  a model cannot be used at all; found when it is opened
│   ├── ModelNotFound           no such folder, or the hub does not give it
│   ├── ModelUnsupported        it opens, but is not the kind of model that was asked for
│   ├── ModelCheckFailed        it computes something else than its reference vectors on this CPU
│   └── ModelNotWritten         its files cannot be written; nothing half done is left
├── ExtraMissing                a library that only tools need is not installed
├── InputTooLong                a text has more tokens than the model takes and truncation was not allowed
├── NonFiniteOutput             one item came out with NaN or Inf; the others are fine
├── EncodingFailed              the engine failed on one item for a reason of its own
├── SchedulerFull               the queue is at its bound
├── WorkExpired                 an item's deadline had passed before it was computed
└── SchedulerStopped            the scheduler is shutting down or lost its workers

Classes hold facts as attributes and know nothing of transports. Every message ends with what to do.
"""

from __future__ import annotations


class EncoderError(Exception):
    """Anything that this package raises on purpose."""


class ModelError(EncoderError):
    """A model cannot be used at all."""

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"model {model!r}: {reason}")
        self.model = model
        self.reason = reason


class ModelNotFound(ModelError):
    """No such folder, or the hub does not give it."""


class ModelUnsupported(ModelError):
    """The model opens but is not of the kind that was asked for."""


class ModelCheckFailed(ModelError):
    """The model disagrees with its reference vectors on this CPU."""


class ModelNotWritten(ModelError):
    """The model's files cannot be written: no space, or no right to; nothing half done is left."""

    def __init__(self, model: str, place: str, cause: str) -> None:
        super().__init__(model, f"it cannot be written to {place} ({cause}); make room there or choose another folder")
        self.place = place


class ExtraMissing(EncoderError):
    """A library that the service never needs, and this tool does, is not installed."""

    def __init__(self, extra: str, library: str) -> None:
        super().__init__(f"this needs {library}, which is not installed; run pip install 'headrace[{extra}]'")
        self.extra = extra
        self.library = library


class InputTooLong(EncoderError):
    """A text has more tokens than the model takes, and truncation was not allowed."""

    def __init__(self, position: int, token_count: int, limit_tokens: int) -> None:
        super().__init__(
            f"text {position} has {token_count} tokens, the model takes {limit_tokens}; shorten it or allow truncation"
        )
        self.position = position
        self.token_count = token_count
        self.limit_tokens = limit_tokens


class NonFiniteOutput(EncoderError):
    """One item came out with NaN or Inf."""

    def __init__(self, model: str) -> None:
        super().__init__(
            f"model {model!r} gave a non-finite value for this text; leave the text out or change the model"
        )
        self.model = model


class EncodingFailed(EncoderError):
    """The engine failed on one item; the cause is chained."""

    def __init__(self, model: str) -> None:
        super().__init__(f"model {model!r} failed on this text; leave the text out or look at the chained cause")
        self.model = model


class SchedulerFull(EncoderError):
    """The queue is at its bound; nothing of the call was accepted."""

    def __init__(self, queued_items: int, capacity_items: int, retry_after_ms: float) -> None:
        super().__init__(
            f"encoder queue holds {queued_items} of {capacity_items} items; retry in {retry_after_ms:.0f} ms"
        )
        self.queued_items = queued_items
        self.capacity_items = capacity_items
        self.retry_after_ms = retry_after_ms


class WorkExpired(EncoderError):
    """An item's deadline had passed before it was computed."""

    def __init__(self) -> None:
        super().__init__("the deadline passed before this item was computed; allow more time or send less")


class SchedulerStopped(EncoderError):
    """The scheduler is shutting down or has lost its workers."""

    def __init__(self) -> None:
        super().__init__("the encoder is stopped; send the request to another replica")
