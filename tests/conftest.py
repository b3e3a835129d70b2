pytest_plugins = ["support.chain", "support.databases"]
