"""Files that people and strangers write: JSON and YAML, bounded, and each field doubted."""
