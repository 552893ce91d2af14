"""What 10^8 and 10^9 chunks cost: unit costs that are measured here, and formulas that multiply them."""
