"""Chain exports from files that other tools wrote: one adapter per format, one set of checks."""
