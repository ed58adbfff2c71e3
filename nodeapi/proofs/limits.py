"""The limit of proofs at older blocks."""

MAX_CHANGES = 50_000
"""Most account versions since a block for which its tries are computed. They take some
3 seconds and 100 MB."""
