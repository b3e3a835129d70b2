pytest_plugins = ["support.chains.chain", "support.indexer.databases"]
