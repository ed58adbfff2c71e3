"""How people get in: sign-up, log-in, their passwords.

Nothing here tells who has an account. Whatever address is typed in, the page says the
same and one mail goes out; what the mail says only the owner of the address reads.
Source: https://cheatsheetseries.owasp.org/cheatsheets/Authentication_Cheat_Sheet.html
"""
