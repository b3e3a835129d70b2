"""``chainkit contracts``: verify, administer and upgrade the contracts."""
