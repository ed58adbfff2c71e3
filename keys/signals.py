"""What other parts of the project may want to hear of."""

from django.dispatch import Signal

password_changed = Signal()
"""Sent with `user` within the transaction that gives somebody another password.

His browser sessions end by themselves: Django keeps a hash of the password in them.
Whatever else he has given access to is for the receivers to end.
"""
