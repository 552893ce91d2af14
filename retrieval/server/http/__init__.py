"""The HTTP listener: the same request path, spoken to as OpenAI and rerank servers are."""
