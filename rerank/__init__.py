"""(query, passage) to score: the quantized cross-encoder, and how its opinion is combined with the first stage's."""
