"""The running loop, as a person and a machine see it."""
