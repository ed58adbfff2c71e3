"""Transactions that customers send: decoding and checks before upstreams get them.

- `stream`: reads RLP into typed fields, with the error texts of geth's decoder.
- `decoding`: raw transactions of all types, with blob sidecars.
- `rules`: the rules that do not depend on the sender's account, with geth's texts.
- `proofs`: the KZG proofs of blobs, with geth's texts.

`nodeapi.relay.checking` applies all of it under the rules of a network's head.
"""
