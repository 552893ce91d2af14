"""The servicers: each method converts, calls, converts."""
