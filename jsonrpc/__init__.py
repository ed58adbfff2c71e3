"""JSON-RPC 2.0: messages, batches, dispatch, errors and the registry of methods.

This package is independent of Ethereum, Django and API keys. The specification leaves
some choices open: codes, messages and order follow go-ethereum's `rpc` package, which
most clients are tested with.

Source: https://www.jsonrpc.org/specification
"""
