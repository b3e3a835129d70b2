"""Following the chain as a service: what an operator opens, runs and watches."""
