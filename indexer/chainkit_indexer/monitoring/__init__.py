"""What a person and a machine see of the loop while it runs."""
