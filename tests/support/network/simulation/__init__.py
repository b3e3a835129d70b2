"""A network of nodes in one thread, under one seed: links, clocks, crashes, and lies."""
