"""Every write to the wallet's tables, logged and announced in the same transaction.

A service that changes a session locks the session first, then its requests. This order
prevents deadlocks. What a change depends on is read after the lock was taken.
"""
