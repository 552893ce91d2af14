"""Models as files of one's own: what is there, where it came from, whether it computes what it should, how fast."""
