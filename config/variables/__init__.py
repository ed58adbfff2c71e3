"""The environment variables of the service, with their defaults and documentation.

Each module declares those of one subject; `groups` has all of them, and checks their values.
`manage.py document_settings` writes docs/settings.md from these declarations.
"""
