"""Which inbox a wallet belongs to, by the identity updates that the node serves (XIP-46)."""
