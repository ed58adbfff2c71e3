from __future__ import annotations

import pytest
from django.db import connection


@pytest.mark.django_db
def test_the_database_answers():
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database(), version()")
        name, version = cursor.fetchone()
    assert name.startswith("test_portcullis_")
    assert "PostgreSQL" in version
