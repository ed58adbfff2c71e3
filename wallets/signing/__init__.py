"""What an account's key can be asked to sign: read, shown in words, signed.

- `text`: texts of strangers, so that they show what is in them.
- `messages`: personal_sign. `typed_data`: eth_signTypedData_v4.
- `transactions`: eth_sendTransaction; `functions`: what a call of a contract says.
- `keys`: private keys, and the keystores that hold them under a passphrase.

Each reads what a dapp has sent into one value, from which both the page and the
signature are made: what is shown is what is signed. Pure functions, which know no
Django. eth-account is loaded by the first one that signs: half a second, 33 MiB.
"""
