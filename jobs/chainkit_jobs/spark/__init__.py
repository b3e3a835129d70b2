"""Spark: its session, the workers' environment, and frames."""
