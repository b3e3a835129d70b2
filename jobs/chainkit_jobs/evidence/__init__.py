"""Evidence: the rows behind each finding, and the signed report that carries them."""
