"""Which backend answers: hard rules, then a scored choice among the backends that they leave."""

from retrieval.routing.asking import Asking, Reading, Subject
from retrieval.routing.router import Router

__all__ = ["Asking", "Reading", "Router", "Subject"]
