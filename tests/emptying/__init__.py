"""A Django app for tests, whose only command replaces Django's `flush`."""
