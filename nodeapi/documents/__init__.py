"""Blocks, transactions and receipts as JSON.

`blocks` and `receipts` create the documents that the import stores; `receipt_codec` packs
receipts. `simulated` has the blocks of eth_simulateV1, and `pending` converts what upstreams
report.
"""
