"""A gateway: signs and pays what an application's clients publish; chooses chain or node."""
