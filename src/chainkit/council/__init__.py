"""The security council: checks evidence; drafts, signs and executes calls; and logs them."""
