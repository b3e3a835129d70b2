"""Command lines of all roles: options, errors, facts and progress, each in one form."""
