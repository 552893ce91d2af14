"""The answer cache on traces and over the wire: the replay with its baseline, and the echo beside the server."""
