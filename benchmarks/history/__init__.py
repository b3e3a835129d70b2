"""How long a history takes to another device, by the commands that a person types."""
