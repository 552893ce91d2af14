"""Benchmarks of Headrace: each runs from the repository root as `python -m bench.<tool>` and writes JSON and a plot."""
