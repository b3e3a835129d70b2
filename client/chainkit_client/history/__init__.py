"""History for another device of the person: a file of messages, written, read and checked."""
