"""The arms of `bench.peers`: one model, run by Headrace and by the libraries that people use today."""
