"""Tools for customers, which need neither Django nor a database.

- `verify`: checks responses of a node against a trusted block hash;
- `merkle`: Merkle proofs and the roots of lists;
- `transactions`: the members of transactions and receipts, from their RLP.

Besides Python, they need coincurve, rlp and safe-pysha3.
"""
