"""Which backend answers: hard rules first, then a scored choice among those that are allowed."""
