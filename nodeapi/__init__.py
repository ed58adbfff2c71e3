"""The node: it imports blocks, executes them once, and answers JSON-RPC requests."""
