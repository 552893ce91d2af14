"""The stages that are more than a call: each takes typed values and gives typed values, and knows nothing of the others."""
