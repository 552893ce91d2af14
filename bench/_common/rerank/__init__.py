"""What `bench.rerank` is made of: pools scored once, the stop rule replayed on them, and what comes out."""
