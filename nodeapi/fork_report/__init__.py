"""What another fork changes for the transactions of a range of blocks, as a page."""
