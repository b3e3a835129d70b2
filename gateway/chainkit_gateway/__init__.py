"""A gateway: it signs and pays what an application's clients publish, and chooses where it goes."""
