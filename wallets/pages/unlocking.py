"""Passphrase forms and their error messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django import forms

from wallets.models import Account
from wallets.services.keystores import LOCKED_FOR, Locked, NoKey, tries_left
from wallets.signing.keys import WrongPassphrase
from wallets.signing.turns import TooBusy

MAX_PASSPHRASE_LENGTH = 1000
"""Characters; the key derivation takes longer for each."""

TOO_BUSY = "The wallet is busy with other keys. Try again in a few seconds."


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
        form.add_error("passphrase", _wrong(left))
    except Locked as error:
        fault = f"Too many wrong passphrases: the account is {error}."
        form.add_error("passphrase", fault)
    except NoKey:
        form.add_error(None, "This account no longer has a key.")
    except TooBusy:
        form.add_error(None, TOO_BUSY)


def _wrong(left: int) -> str:
    """Return the error of a wrong passphrase. left: number of tries before the lock."""
    lock = f"locked for {int(LOCKED_FOR.total_seconds() // 60)} minutes"
    if not left:
        return f"Wrong passphrase. The account is now {lock}."
    more = "one more wrong passphrase" if left == 1 else f"{left} more wrong ones"
    return f"Wrong passphrase. After {more}, the account is {lock}."
