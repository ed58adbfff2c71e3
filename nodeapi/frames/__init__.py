"""Frames of WebSockets, written to a client without waiting for it.

`wire` writes them, `writer` keeps the limits for unread bytes, and `close_codes` says why a
socket is closed.
"""
