"""The rows that a node keeps beside the chain's, in the database of the indexer."""
