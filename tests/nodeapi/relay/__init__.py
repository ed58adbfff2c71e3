"""Requests that upstreams answer: sent and pending transactions, the pending block."""
