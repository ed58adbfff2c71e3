"""Arguments with many members, decoded as geth decodes them.

`calls` has calls and state overrides, `simulations` the blocks of eth_simulateV1.
"""
