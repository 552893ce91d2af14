"""Collections on a Qdrant server or cluster; the only package that knows qdrant-client."""
