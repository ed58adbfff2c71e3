"""Calls of the wallet to the node that serves it, from sockets and from pages."""
