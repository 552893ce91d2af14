"""What is seen from outside: the log and the Prometheus metrics."""
