import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

_ROLES = [("owner", "owner"), ("developer", "developer"), ("viewer", "viewer")]

# The function that also protects the events of keys.
_APPEND_ONLY = """
CREATE TRIGGER event_stays BEFORE UPDATE OR DELETE ON keys_memberevent
    FOR EACH ROW EXECUTE FUNCTION keys_event_stays();
"""

_REVERSE = "DROP TRIGGER event_stays ON keys_memberevent;"


class Migration(migrations.Migration):
    dependencies = [("keys", "0020_keys_issued_by_staff")]

    operations = [
        migrations.AddField(
            model_name="keyevent",
            name="actor_role",
            field=models.CharField(
                blank=True,
                choices=_ROLES,
                db_default="",
                default="",
                help_text="The actor's role at that time, if they acted for the account of another user. Empty: their own account, or not a member.",
                max_length=16,
            ),
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("role", models.CharField(choices=_ROLES, max_length=16)),
                (
                    "joined_at",
                    models.DateTimeField(default=django.utils.timezone.now),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("account", "member"), name="member_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("account", models.F("member")), _negated=True
                        ),
                        name="member_of_another",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "email",
                    models.EmailField(max_length=254, verbose_name="e-mail address"),
                ),
                ("role", models.CharField(choices=_ROLES, max_length=16)),
                (
                    "digest",
                    models.CharField(
                        editable=False,
                        help_text="Hex SHA-256 of the token in the mailed link.",
                        max_length=64,
                        unique=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now),
                ),
                ("expires_at", models.DateTimeField()),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "invited_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("account", "email"), name="invited_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MemberEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "type",
                    models.CharField(
                        choices=[
                            ("member.invited", "invited"),
                            ("member.invitation_withdrawn", "invitation withdrawn"),
                            ("member.joined", "joined"),
                            ("member.role_changed", "role changed"),
                            ("member.removed", "removed"),
                            ("member.left", "left"),
                        ],
                        max_length=32,
                    ),
                ),
                ("actor_ip", models.GenericIPAddressField(blank=True, null=True)),
                (
                    "email",
                    models.CharField(
                        blank=True, help_text="The invited address.", max_length=254
                    ),
                ),
                ("role", models.CharField(choices=_ROLES, max_length=16)),
                (
                    "former_role",
                    models.CharField(blank=True, choices=_ROLES, max_length=16),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="member_events",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        help_text="None: the command line, or the service itself.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="The member that was changed. None: an invited address.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(
                        fields=["account", "-id"], name="member_event_of_account"
                    )
                ],
            },
        ),
        migrations.RunSQL(_APPEND_ONLY, _REVERSE),
    ]
