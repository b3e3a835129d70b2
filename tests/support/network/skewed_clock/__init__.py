"""A folder for PYTHONPATH: processes that begin with it have another time of day."""
