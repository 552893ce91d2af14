"""Headrace as a retriever of LangChain, LlamaIndex and Haystack: one module a framework, each behind an extra.

Importing this package loads no framework; the modules `langchain`, `llama_index` and `haystack` do. They are clients:
they ask a running server over gRPC, and load neither models nor stores. What all three share is how a question is
asked (`asking`), how filters are read (`filters`), what a hit says (`hits`), and the connection (`connection`).
"""

from retrieval.adapters.asking import SearchOptions
from retrieval.adapters.errors import HeadraceError

__all__ = ["HeadraceError", "SearchOptions"]
