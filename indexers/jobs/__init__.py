"""Indexing jobs: declared in files, durable, resumable, observable."""
