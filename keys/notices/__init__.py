"""Emails to users about their keys, each of which is sent once.

A notice is a row of `keys_notice`, written in the transaction of its cause. The job of
the web process sends it after the commit, so that no request waits for the mail server.
Notices that a command or a killed process has queued, or that the mail server has
rejected, are sent by the next periodic check of any web process.

A unique constraint on the occasion prevents a second notice, even if several processes
detect it. While a notice is sent, its row is locked, so that no other process sends it.
A process that is killed between the mail server's response and the commit sends it
again, with the same Message-ID.
"""
