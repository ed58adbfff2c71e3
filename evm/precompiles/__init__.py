"""Precompiled contracts, implemented with native libraries.

`tables` lists the contracts of each fork. Tests compare them with py-evm's, which are
pure Python.
"""
