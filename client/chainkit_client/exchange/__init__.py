"""History that one device of a person asks another one for, and gets (XIP-31)."""
