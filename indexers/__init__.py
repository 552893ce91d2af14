"""The write side: sources, parsers, chunking, the record and the Index that serves from it."""
