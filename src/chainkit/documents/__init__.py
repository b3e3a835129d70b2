"""Files that people and strangers write: JSON and YAML, bounded, and each field doubted.

JSON that comes from outside is parsed in two places only. ``fields.read_json`` reads a file that a
person may have written: in any layout, no field twice. ``canonical.parse_object`` reads what was
signed or hashed, which has one form only. ``package_data`` reads what this package ships.
"""
