"""A private chain on this machine, for the tests, the demo and the drills."""
