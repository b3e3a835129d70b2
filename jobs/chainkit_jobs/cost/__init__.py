"""What a chain cost: one row of costs per transaction, cut by who, what, when and how large."""
