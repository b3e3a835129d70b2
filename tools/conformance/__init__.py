"""The list of what the specifications demand: the code that meets it, and the tests that show it."""
