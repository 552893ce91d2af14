"""How look-alikes and harmless rewrites are made of real questions: the words, and one function for each kind."""
