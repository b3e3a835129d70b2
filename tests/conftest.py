pytest_plugins = ["support.chain"]
