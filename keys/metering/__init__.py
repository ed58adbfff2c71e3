"""Counts the calls of API keys and writes the counts to the database."""
