"""``chainkit council``: check evidence; draft, sign and execute proposals."""
