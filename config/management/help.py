"""`manage.py help`: the project's commands first, with one sentence each."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from textwrap import wrap

from django.apps import apps
from django.core.management import ManagementUtility, get_commands, load_command_class

from config import env

_WIDTH = 100


class Manage(ManagementUtility):
    """Django's command line, with another list of commands."""

    def main_help_text(self, commands_only: bool = False) -> str:
        """Return the list of all commands."""
        if commands_only:
            return super().main_help_text(commands_only)
        ours = project_commands()
        others = defaultdict(list)
        for name, app in sorted(get_commands().items()):
            if name not in ours:
                others[app.rpartition(".")[2]].append(name)
        indent = max(map(len, ours)) + 4
        lines = [
            f"Type '{self.prog_name} help COMMAND' for the options of a command.",
            "",
        ]
        for name, sentence in ours.items():
            first, *rest = wrap(sentence, _WIDTH - indent)
            lines.append(f"  {name:{indent - 2}}{first}")
            lines += [" " * indent + line for line in rest]
        lines += ["", "Commands of Django and of other packages:", ""]
        for app, names in others.items():
            text = f"{app}: {', '.join(names)}"
            lines += wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)


def project_commands() -> dict[str, str]:
    """Return the first sentence of the help of each command of this project, by name."""
    found = {}
    for name, app in sorted(get_commands().items()):
        if _is_ours(app):
            text = " ".join(load_command_class(app, name).help.split())
            sentence, period, _ = text.partition(". ")
            found[name] = sentence + period.strip()
    return found


def _is_ours(app: str) -> bool:
    """Return whether an app's name is that of a package of this repository."""
    return any(
        one.name == app and Path(one.path).parent == env.BASE_DIR
        for one in apps.get_app_configs()
    )
