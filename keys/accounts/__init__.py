"""Accounts: sign-up, login and passwords.

No response reveals whether an address has an account. For any address, the page shows
the same text and one email is sent. Only the owner of the address can read the email.

Source: https://cheatsheetseries.owasp.org/cheatsheets/Authentication_Cheat_Sheet.html
"""
