"""Values of a sparse state: fetched from upstreams, proved, and stored.

A network that starts at a checkpoint knows the checkpoint's block, and of its state only
what was proved. `values` stores proved values as rows of the checkpoint's block.
"""
