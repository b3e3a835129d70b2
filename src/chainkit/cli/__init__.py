"""The ``chainkit`` command: one group per role, read from the environment only here."""
