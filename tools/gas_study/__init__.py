"""The gas of publishing and of the registry, measured on anvil beside XIP-49 §2.1.3's table."""
