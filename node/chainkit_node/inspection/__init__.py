"""A node as its operator looks at it: one typed snapshot, as text, as JSON and as a page."""
