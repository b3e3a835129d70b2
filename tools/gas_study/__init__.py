"""What publishing and the registry cost, measured on anvil beside XIP-49 §2.1.3's table."""
