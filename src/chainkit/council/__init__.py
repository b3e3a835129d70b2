"""The security council: it checks evidence, drafts, signs and executes calls, and logs them."""
