"""The status of followed networks, for pages.

`facts` reads the head, its lag, the follower and the upstreams; `charts` draws the import
of the last day; `quarantine` releases blocks that were found invalid; `block_states` has
the states of blocks, and `reorganisations` the latest reorganisations, for the explorer too.
"""
