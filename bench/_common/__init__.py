"""What the benchmarks share: data sets, metrics, statistics, cached vectors, results and plots."""
