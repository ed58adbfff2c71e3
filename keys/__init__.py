"""Customers' API keys: format, issue, revocation, and what a key may do."""
