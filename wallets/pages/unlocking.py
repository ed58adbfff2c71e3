"""Passphrase forms and their error messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django import forms

from wallets.models import Account
from wallets.services.keystores import Locked, NoKey, tries_left
from wallets.signing.keys import WrongPassphrase
from wallets.signing.turns import TooBusy

MAX_PASSPHRASE_LENGTH = 1000
"""Characters; the key derivation takes longer for each."""

TOO_BUSY = "Too many keys are being decrypted at the moment. Try again soon."


def secret_field(
    *,
    label: str | None = None,
    required: bool = True,
    autocomplete: str = "off",
    help_text: str = "",
) -> forms.CharField:
    """Return a password field: its value is not stripped and not shown again."""
    widget = forms.PasswordInput(attrs={"autocomplete": autocomplete})
    return forms.CharField(
        label=label,
        required=required,
        strip=False,
        max_length=MAX_PASSPHRASE_LENGTH,
        help_text=help_text,
        widget=widget,
    )


class PassphraseForm(forms.Form):
    """The passphrase of one account."""

    passphrase = secret_field()


@contextmanager
def unlocking(form: PassphraseForm, account: Account | None) -> Iterator[None]:
    """Add the errors of unlocking a key to a form."""
    try:
        yield
    except WrongPassphrase:
        left = 0 if account is None else tries_left(account)
        more = f"{left} more and" if left else "Now"
        fault = f"Wrong passphrase. {more} the account is locked for a while."
        form.add_error("passphrase", fault)
    except Locked as error:
        fault = f"Too many wrong passphrases: the account is {error}."
        form.add_error("passphrase", fault)
    except NoKey:
        form.add_error(None, "This account no longer has a key.")
    except TooBusy:
        form.add_error(None, TOO_BUSY)
