"""Date formats by language, for Django."""
