"""The status of followed networks, for the admin.

`facts` reads the head, its lag, the follower and the upstreams; `charts` draws the import
of the last day; `quarantine` releases blocks that were found invalid.
"""
