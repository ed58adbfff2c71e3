"""Results of eth_getProof and debug_executionWitness, without Django.

- `limits`: how much may have changed since an older block;
- `requests`: the storage keys of a request;
- `documents`: proofs as JSON;
- `witness`: the data with which a block can be executed without a database.
"""
