"""The order of passages that lets a model server use again what it has computed of earlier prompts."""

from retrieval.prefix.order import PrefixFigures, PrefixOrder
from retrieval.prefix.relevance import RelevanceOrder

__all__ = ["PrefixFigures", "PrefixOrder", "RelevanceOrder"]
