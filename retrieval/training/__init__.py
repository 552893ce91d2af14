"""Makes the pools that a cross-encoder is trained and judged on, by the parts that serve, and runs the training."""
