"""Names and decoding of calls, events and errors of contracts (Solidity's contract ABI).

`types` are the types of values; `definitions` describes functions, events and errors;
`json_abi` reads uploaded ABIs; `standards.txt` lists well-known interfaces, from which
`manage.py write_selectors` writes `selectors.json`; `selectors` looks them up; `values`
decodes data; `encoding` encodes calls; `decoding` decodes calls, errors and logs, and `batches` calls inside
calls; `addresses` writes and reads addresses with their checksum;
`erc20` reads what a token's contract reports of itself.

Everything here is pure and bounded, because data is untrusted. A decoder reads each byte
at most once and returns at most MAX_VALUES values, whatever offsets and lengths say.
Source: https://docs.soliditylang.org/en/latest/abi-spec.html
"""
