"""The administration of the contracts, by their own events, and whether these fit together."""
