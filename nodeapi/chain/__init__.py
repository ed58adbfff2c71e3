"""Blocks come in: sources, verification, the one transaction that makes them visible."""
