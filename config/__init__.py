"""The Django project: settings, routing, and the services that run beside it."""
