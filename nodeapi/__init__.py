"""Area A: blocks come in, are executed once, and are answered over JSON-RPC."""
