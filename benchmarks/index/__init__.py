"""`make bench-index`: how fast the indexer is, beside a floor and beside the tutorial's way."""
