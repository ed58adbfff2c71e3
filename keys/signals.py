"""Django signals that this package sends."""

from django.dispatch import Signal

password_changed = Signal()
"""Sent with `user` in the transaction that changes the password of a user.

Django ends the user's browser sessions itself, because they contain a hash of the
password. Receivers end all other access that the user has granted.
"""
