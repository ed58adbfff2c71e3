"""Requests that only the provider's nodes, or the local pool, can answer.

`relay` sends transactions and reads pending ones, `checking` checks what is sent, `pools`
reads transaction pools, `receipt_waits` waits until a transaction is in a block, and
`bounds` limits the calls in flight.
"""
