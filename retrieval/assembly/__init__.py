"""From hits to the context that a model reads: filter, pack into a token budget, merge, number. Pure functions."""

from retrieval.assembly.assemble import assemble
from retrieval.assembly.budget import generation_budget
from retrieval.assembly.counting import PassageCounter

__all__ = ["PassageCounter", "assemble", "generation_budget"]
