"""`manage.py flush_chains`."""

from __future__ import annotations

import builtins
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from keys.models import ApiKey, User
from networks.models import Network
from nodeapi.chain.database import import_lock, importer_connection
from nodeapi.models import Block, Code, StorageVersion, TransactionRecord, TrieNode
from tests.support import chains, sample

pytestmark = pytest.mark.django_db(transaction=True)


def import_sample() -> None:
    chains.import_blocks("sample", sample.genesis(), sample.raw_blocks()[:5])


def flush(**options: bool) -> str:
    printed = StringIO()
    call_command("flush_chains", stdout=printed, **options)
    return printed.getvalue()


def test_flushed_chains_are_imported_again_and_all_else_is_kept() -> None:
    owner = User.objects.create_user("owner@example.org")
    ApiKey.objects.create(owner=owner, name="Kept")
    import_sample()
    before = chains.rows("sample")
    printed = flush(interactive=False)
    assert "  sample, head 5\n" in printed
    assert " 6  nodeapi_block\n" in printed
    for model in (Block, Code, StorageVersion, TransactionRecord, TrieNode):
        assert not model.objects.exists()
    network = Network.objects.get()
    assert (network.head_number, network.head_hash) == (None, None)
    assert ApiKey.objects.get().owner == owner
    assert flush() == "There is no chain data in this database.\n"
    import_sample()
    assert chains.rows("sample") == before


@pytest.mark.parametrize("answer", ["no", None])
def test_chains_are_kept_unless_the_deletion_is_confirmed(
    answer: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(prompt: str) -> str:
        if answer is None:
            raise EOFError
        return answer

    import_sample()
    monkeypatch.setattr(builtins, "input", ask)
    with pytest.raises(CommandError, match="nothing was deleted"):
        flush()
    assert Block.objects.count() == 6
    monkeypatch.setattr(builtins, "input", lambda prompt: "yes")
    flush()
    assert not Block.objects.exists()


def test_chains_are_kept_while_one_is_imported() -> None:
    import_sample()
    with (
        importer_connection() as importer,
        import_lock(importer, Network.objects.get().pk),
        pytest.raises(CommandError, match="an import into sample is running, nothing"),
    ):
        flush(interactive=False)
    assert Block.objects.count() == 6


def test_heads_without_blocks_are_removed() -> None:
    """As after a restore of a dump without chain data."""
    import_sample()
    Block.objects.all().delete()
    flush(interactive=False)
    assert Network.objects.get().head_number is None
