"""Texts by users: validation, storage and display without misleading characters."""
