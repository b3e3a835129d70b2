"""Topics and publishes over several nodes, none of which is trusted."""
