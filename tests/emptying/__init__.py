"""A Django app of the tests' own, whose one command takes the place of Django's `flush`."""
