"""Today's clients, as tests drive them."""
