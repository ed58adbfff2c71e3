"""The node's pages in the admin.

Django imports this package, whose modules register their pages.
"""

from nodeapi.admin import abis, blocks, networks

__all__ = ["abis", "blocks", "networks"]
