"""Date formats of English."""
