"""Reads, describes and signs the messages, typed data and transactions of dapps.

- `messages`: personal_sign. `typed_data`: eth_signTypedData_v4.
- `known`: typed data of well-known kinds, described in a sentence.
- `transactions`: eth_sendTransaction.
- `keys`: private keys, and keystores encrypted with a passphrase.

Each module reads a dapp's input into one value, from which both the page and the
signature are made, so that the page shows what is signed. All functions are pure and
use no Django. The first signature imports eth-account, which takes half a second and 33
MiB.
"""
