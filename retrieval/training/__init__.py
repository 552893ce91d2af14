"""Makes the pools that a cross-encoder is trained and judged on, by the parts that serve: chunker, encoder, BM25, fusion."""
