"""JSON-RPC 2.0: messages, batches, dispatch, errors and the register of methods.

Knows no Ethereum, no Django and no API keys. Where the specification leaves a choice,
codes, messages and order follow go-ethereum's `rpc` package, which clients know best.
Source: https://www.jsonrpc.org/specification
"""
