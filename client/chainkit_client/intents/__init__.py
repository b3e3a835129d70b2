"""Intents: the user's wishes for a group, until the network accepts or finally refuses each."""
