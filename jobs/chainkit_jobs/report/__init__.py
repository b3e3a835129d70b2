"""The page for people: one file that asks for nothing from elsewhere."""
