"""The answer cache on traces and over the wire: the replay, its baseline and its figures, the echo beside the server."""
