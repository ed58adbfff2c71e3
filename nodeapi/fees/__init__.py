"""Fees: the tips of blocks, and the history of eth_feeHistory."""
