"""The list of what the specifications demand: the code that meets it, the tests that show it."""
