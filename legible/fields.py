r"""Names, notes and email addresses that people type and others read.

A text with hidden characters can look like another one: `\u202eyek live\u2066` reads
"evil key". Such texts are rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models

from legible.text import find_hidden_in_name, visible

if TYPE_CHECKING:
    _CharField = models.CharField[str, str]
    _EmailField = models.EmailField[str, str]
    _TextField = models.TextField[str, str]
else:  # not subscriptable at run time
    _CharField = models.CharField
    _EmailField = models.EmailField
    _TextField = models.TextField


def validate_name(value: str) -> None:
    """Reject a name with hidden characters or too many combining marks.

    Raises: ValidationError, naming the character.
    """
    hidden = find_hidden_in_name(value)
    if hidden is not None:
        raise ValidationError(
            "A name can't have the character U+%(number)s here: it can't be seen.",
            code="hidden_character",
            params={"number": f"{ord(hidden):04X}"},
        )


def validate_note(value: str) -> None:
    """Reject a text if one of its lines has hidden characters. Tabs are allowed.

    Raises: ValidationError, naming the character.
    """
    for line in value.replace("\r\n", "\n").split("\n"):
        validate_name(line.replace("\t", " "))


class NameField(_CharField):
    """A column of names without hidden characters.

    Rows of earlier versions may have such names. When they are read, each hidden
    character is replaced by its number, such as `⟨U+202E⟩`, and the name is cut to the
    column's length. Every page then shows them safely, and the row can be saved.
    """

    default_validators = [validate_name]

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        """Return the name with hidden characters replaced by their numbers."""
        if value is None or find_hidden_in_name(value) is None:
            return value
        return visible(value)[: self.max_length]

    def deconstruct(self) -> tuple[Any, ...]:
        """Return a CharField, so that migrations do not depend on this class."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.CharField", arguments, options


class NoteField(_TextField):
    """A column of notes, of any number of lines, without hidden characters.

    Rows of earlier versions are read as in `NameField`.
    """

    default_validators = [validate_note]

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        """Return the note with hidden characters replaced by their numbers."""
        return value if value is None else visible(value)

    def deconstruct(self) -> tuple[Any, ...]:
        """Return a TextField, so that migrations do not depend on this class."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.TextField", arguments, options


class EmailField(_EmailField):
    """A column of email addresses without hidden characters.

    Django's own validator accepts such characters in a domain. Rows of earlier versions
    are read unchanged, because people log in with the address.
    """

    default_validators = [*models.EmailField.default_validators, validate_name]

    def deconstruct(self) -> tuple[Any, ...]:
        """Return Django's EmailField, so that no migration is needed."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.EmailField", arguments, options
