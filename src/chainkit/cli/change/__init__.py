"""Commands that change something on the chain: shown first, then sent or proposed."""
