"""Intents: what the user wants of a group, until the network has it or refuses it for good."""
