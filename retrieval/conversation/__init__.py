"""Earlier turns: follow-up questions made self-contained, a budget for history, summaries of what has no room."""
