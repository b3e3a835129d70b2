"""An operator's questions to a database: read-only."""
