"""Measurements of what this project claims to be fast at; nothing else imports them."""
