"""What an operator asks a database: read-only."""
