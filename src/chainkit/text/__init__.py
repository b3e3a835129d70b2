"""Values as people read and write them."""
