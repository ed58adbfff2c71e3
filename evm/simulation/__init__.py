"""Execution of calls that are not transactions of a block, by geth's rules for its RPC.

- `arguments`: the arguments of a call, and the message that is executed.
- `block`: the properties of the block in which a call is executed.
- `overrides`: changes of state and block that a caller requests.
- `checks`: geth's checks before the execution, with its codes and texts.
- `call`: execution of one call on a `World`.
- `estimate`: the least gas limit. `access_list`: accounts and slots that are touched.
- `revert`: the error of a reverted call.

Simulated blocks consist of such calls:

- `planning`: their numbers, timestamps and headers. `errors`: reasons to reject them.
- `simulator`: execution of the blocks in order. `block_run`: execution of one.
- `budget`: the gas that all calls share. `world`: balances that overrides have set.
- `transactions`: the transactions that stand for the calls. `transfer_logs`: their logs.
"""
