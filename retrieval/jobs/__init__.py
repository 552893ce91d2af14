"""Indexing jobs at the edge: stores, targets behind a server, worker processes, supervision."""
