from django.db import migrations


def make_upstreams(apps, schema_editor):
    """Make each network's upstream_url an upstream."""
    upstreams = apps.get_model("networks", "Upstream").objects
    networks = apps.get_model("networks", "Network").objects
    for network in networks.exclude(upstream_url=""):
        upstreams.create(network=network, url=network.upstream_url)


def make_urls(apps, schema_editor):
    """Set each upstream_url to the first URL that the version before can use."""
    upstreams = apps.get_model("networks", "Upstream").objects
    usable = upstreams.filter(is_enabled=True, url__startswith="http")
    for network in apps.get_model("networks", "Network").objects.all():
        first = usable.filter(network=network).order_by("position", "id").first()
        if first is not None:
            network.upstream_url = first.url
            network.save(update_fields=["upstream_url"])
    upstreams.all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ('networks', '0005_upstream'),
    ]

    operations = [
        migrations.RunPython(make_upstreams, make_urls),
        migrations.RemoveField(
            model_name='network',
            name='upstream_url',
        ),
    ]
