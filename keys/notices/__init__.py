"""Mails to users about their keys, each of which is sent once.

A notice is a row of `keys_notice`, written in the transaction of its cause. It is sent
after the commit. If the mail server is unavailable, the periodic job sends it later. A
unique constraint on the occasion prevents a second notice, even if several processes
detect it. While a notice is sent its row is locked, so that no other process sends it. A
process that is killed between the mail server's answer and the commit sends it again,
with the same Message-ID.
"""
