"""What a question states: its kind, negations, directions, figures, names and words, read without a model."""
