"""How fast nodes agree with each other."""
