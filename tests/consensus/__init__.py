"""Runner for published consensus tests: `make test-consensus DIR=…`.

It runs BlockchainTests and GeneralStateTests of ethereum/tests, and `blockchain_test`,
`blockchain_test_engine` and `state_test` fixtures of execution-spec-tests, which are not part
of the repository. Blocks are decoded, verified and executed by the code that imports them,
on a state in memory.

It prints one line for each failure, counts tests for unknown networks and in unknown
formats, and exits with status 1 if a test failed. A test can take two hours; one that runs
for more than ten seconds is named on standard error every fifteen seconds.

- Proof-of-work seals are not verified: a block whose only fault is its seal is accepted.
- An invalid transaction must be the reason for which its block is rejected.
- `blockchain_test_engine` fixtures are executed as blocks. Payloads with an expected
  `errorCode` test the Engine API, which does not exist here, and are left out.
"""
