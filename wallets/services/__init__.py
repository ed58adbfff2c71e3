"""All that changes in the wallet. Each change is logged and announced with its commit.

Whoever changes a session locks it first, then its requests: no two changes wait for each
other, and what a change was decided upon is read behind the lock.
"""
