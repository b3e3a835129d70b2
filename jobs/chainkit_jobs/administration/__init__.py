"""Who ruled the contracts and how, told by their own events, and whether these fit together."""
