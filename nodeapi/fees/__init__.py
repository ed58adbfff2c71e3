"""What is known about fees: the tips of blocks, and the history of eth_feeHistory."""
