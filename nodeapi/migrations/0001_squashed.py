"""Create the tables of blocks, state, traces and followers."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


_STORAGE = """
ALTER TABLE nodeapi_block
    ALTER COLUMN document SET STORAGE EXTERNAL,
    ALTER COLUMN full_document SET STORAGE EXTERNAL,
    SET (toast_tuple_target = 8160);
ALTER TABLE nodeapi_transaction
    ALTER COLUMN document SET STORAGE EXTERNAL,
    SET (toast_tuple_target = 8160);
ALTER TABLE nodeapi_transactionrecord
    ALTER COLUMN receipt SET STORAGE EXTERNAL,
    ALTER COLUMN calls SET STORAGE EXTERNAL,
    ALTER COLUMN prestate SET STORAGE EXTERNAL,
    ALTER COLUMN details SET STORAGE EXTERNAL,
    SET (toast_tuple_target = 8160);
ALTER TABLE nodeapi_trienode SET (fillfactor = 80);
"""
"""Documents are stored as they are sent, and records are compressed already, so that
PostgreSQL need not compress either (EXTERNAL). Values of up to 8 kB stay in their page, out
of the TOAST table. Nodes of the newest trie are updated at each block; free space keeps
these updates in their page."""

_RECORDS = """
CREATE FUNCTION nodeapi_records_complete(of_block bigint) RETURNS void AS $$
DECLARE
    due integer;
    found integer;
BEGIN
    SELECT transaction_count INTO due FROM nodeapi_block WHERE id = of_block;
    IF due IS NULL THEN
        RETURN;  -- the block went as well
    END IF;
    SELECT count(*) INTO found FROM nodeapi_transactionrecord
        WHERE block_id = of_block;
    IF found <> due THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = format('block %s has %s transactions, and records of %s',
                of_block, due, found),
            CONSTRAINT = 'record_for_each_transaction';
    END IF;
END
$$ LANGUAGE plpgsql;

CREATE FUNCTION nodeapi_block_has_records() RETURNS trigger AS $$
BEGIN
    PERFORM nodeapi_records_complete(NEW.id);
    RETURN NULL;
END
$$ LANGUAGE plpgsql;

CREATE FUNCTION nodeapi_record_has_gone() RETURNS trigger AS $$
BEGIN
    PERFORM nodeapi_records_complete(OLD.block_id);
    RETURN NULL;
END
$$ LANGUAGE plpgsql;

CREATE FUNCTION nodeapi_records_belong() RETURNS trigger AS $$
DECLARE
    stray record;
BEGIN
    SELECT came.block_id, came.index INTO stray FROM came
        LEFT JOIN nodeapi_block AS block ON block.id = came.block_id
        WHERE block.id IS NULL OR came.index >= block.transaction_count LIMIT 1;
    IF FOUND THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = format('block %s has no transaction %s to be recorded',
                stray.block_id, stray.index),
            CONSTRAINT = 'record_for_each_transaction';
    END IF;
    RETURN NULL;
END
$$ LANGUAGE plpgsql;

CREATE CONSTRAINT TRIGGER record_for_each_transaction
    AFTER INSERT OR UPDATE OF transaction_count ON nodeapi_block
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION nodeapi_block_has_records();

CREATE CONSTRAINT TRIGGER record_for_each_transaction
    AFTER DELETE OR UPDATE OF block_id, index ON nodeapi_transactionrecord
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION nodeapi_record_has_gone();

CREATE TRIGGER records_belong
    AFTER INSERT ON nodeapi_transactionrecord REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION nodeapi_records_belong();

CREATE TRIGGER records_belong_after_update
    AFTER UPDATE ON nodeapi_transactionrecord REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION nodeapi_records_belong();
"""
"""Each transaction of a block has a record, or the commit is refused. A block is written
before its records, in the same transaction: whether a record belongs to a transaction of its
block is checked at once, and whether the records are complete at the commit. Records of a
block have different indexes, so that as many as the block has transactions, all below that
number, are one for each."""



class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('nodeapi', '0001_initial'),
        ('nodeapi', '0002_storage'),
        ('nodeapi', '0003_transactionrecord'),
        ('nodeapi', '0004_record_for_each_transaction'),
        ('nodeapi', '0005_full_document'),
        ('nodeapi', '0006_side_blocks'),
        ('nodeapi', '0007_lz4_documents'),
        ('nodeapi', '0008_timestamp_in_header'),
        ('nodeapi', '0009_following'),
        ('nodeapi', '0010_summarize_versions'),
        ('nodeapi', '0011_fork_warnings'),
        ('nodeapi', '0013_trie_node_versions'),
        ('nodeapi', '0015_pooled_transactions'),
        ('nodeapi', '0016_logs'),
        ('nodeapi', '0017_appearances'),
        ('nodeapi', '0018_contract_abis'),
        ('nodeapi', '0019_wording'),
        ('nodeapi', '0020_pooled_network_form'),
        ('nodeapi', '0021_plain_help_texts'),
    ]

    dependencies = [
        ('networks', '0001_squashed'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AppearanceBackfill',
            fields=[
                ('network', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='appearance_backfill', serialize=False, to='networks.network')),
                ('missing_below', models.BigIntegerField(help_text='Canonical blocks below this number have no rows.')),
            ],
        ),
        migrations.CreateModel(
            name='Block',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hash', models.BinaryField(max_length=32)),
                ('number', models.BigIntegerField()),
                ('parent_hash', models.BinaryField(max_length=32)),
                ('is_canonical', models.BooleanField()),
                ('total_difficulty', models.DecimalField(decimal_places=0, max_digits=78)),
                ('state_root', models.BinaryField(max_length=32)),
                ('gas_used', models.BigIntegerField()),
                ('transaction_count', models.IntegerField()),
                ('header', models.BinaryField(help_text='RLP of the header.')),
                ('body', models.BinaryField(help_text='RLP of [transactions, uncles, withdrawals if there are any].')),
                ('document', models.BinaryField(help_text='The block object as JSON: totalDifficulty first, and last the transactions, as hashes.')),
                ('transactions_offset', models.IntegerField(help_text='Offset in the document at which the array of transactions begins.')),
                ('full_document', models.BinaryField(help_text='The document with transaction objects, as an LZ4 block.')),
                ('network', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
        ),
        migrations.CreateModel(
            name='Code',
            fields=[
                ('hash', models.BinaryField(max_length=32, primary_key=True, serialize=False)),
                ('code', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='FollowerStatus',
            fields=[
                ('network', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='follower_status', serialize=False, to='networks.network')),
                ('process_started_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField(help_text='Written every second while the follower runs.')),
                ('best_number', models.BigIntegerField(help_text='Highest head that the upstreams report.', null=True)),
                ('best_hash', models.BinaryField(max_length=32, null=True)),
                ('starting_number', models.BigIntegerField(help_text='The head when catching up began. None: up to date.', null=True)),
                ('alarm', models.TextField(blank=True, default='', help_text='Why following has stopped. Empty: it runs.')),
            ],
            options={
                'verbose_name': 'follower status',
                'verbose_name_plural': 'follower statuses',
            },
        ),
        migrations.CreateModel(
            name='LogBackfill',
            fields=[
                ('network', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='log_backfill', serialize=False, to='networks.network')),
                ('missing_below', models.BigIntegerField(help_text='Canonical blocks below this number have no rows.')),
            ],
        ),
        migrations.CreateModel(
            name='UpstreamStatus',
            fields=[
                ('upstream', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='status', serialize=False, to='networks.upstream')),
                ('head_number', models.BigIntegerField(null=True)),
                ('head_hash', models.BinaryField(max_length=32, null=True)),
                ('client_version', models.CharField(blank=True, default='', help_text='web3_clientVersion.', max_length=200)),
                ('latency_ms', models.FloatField(help_text='Moving average over the last requests.', null=True)),
                ('requests', models.BigIntegerField(default=0, help_text='Since the follower began.')),
                ('errors', models.BigIntegerField(default=0, help_text='Of these requests.')),
                ('last_error', models.TextField(blank=True, default='', help_text="Without the upstream's URL.")),
                ('last_error_at', models.DateTimeField(null=True)),
                ('backing_off_until', models.DateTimeField(help_text='No requests are sent before.', null=True)),
                ('checked_at', models.DateTimeField(help_text='Last request.', null=True)),
                ('fork_warnings', models.TextField(blank=True, db_default='', default='', help_text='Differences of its fork schedule from ours, one a line.')),
                ('unsupported_fork_time', models.DecimalField(decimal_places=0, help_text='Unix time of the first fork that it schedules and we lack.', max_digits=20, null=True)),
            ],
            options={
                'verbose_name': 'upstream status',
                'verbose_name_plural': 'upstream statuses',
            },
        ),
        migrations.CreateModel(
            name='SideDiff',
            fields=[
                ('block', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='side_diff', serialize=False, to='nodeapi.block')),
                ('diff', models.BinaryField(help_text='evm.changes, encoded.')),
            ],
        ),
        migrations.CreateModel(
            name='ContractAbi',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.BinaryField(help_text='Address of the contract. Empty: all contracts.', max_length=20)),
                ('name', models.CharField(max_length=100)),
                ('size', models.PositiveIntegerField(help_text='Number of functions, events and errors.')),
                ('uploaded_at', models.DateTimeField(auto_now_add=True)),
                ('network', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='contract_abis', to='networks.network')),
                ('owner', models.ForeignKey(blank=True, help_text='The names are only shown to this user and the members of their account. Empty: they are shown to everyone.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='contract_abis', to=settings.AUTH_USER_MODEL)),
                ('uploaded_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'contract ABI',
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='AbiEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.BinaryField(help_text='Selector of a function or error, topic 0 of an event.', max_length=32)),
                ('line', models.TextField(help_text="The definition in Solidity's notation.")),
                ('abi', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='nodeapi.contractabi')),
            ],
            options={
                'verbose_name': 'ABI entry',
                'verbose_name_plural': 'ABI entries',
            },
        ),
        migrations.CreateModel(
            name='ImportTiming',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.BigIntegerField()),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('fetch_ms', models.FloatField(help_text='From the first request to the last byte.')),
                ('execute_ms', models.FloatField(help_text='Verification, with the execution.')),
                ('commit_ms', models.FloatField(help_text='The transaction with the head.')),
                ('transactions', models.PositiveIntegerField()),
                ('gas_used', models.BigIntegerField()),
                ('network', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='import_timings', to='networks.network')),
            ],
        ),
        migrations.CreateModel(
            name='Log',
            fields=[
                ('pk', models.CompositePrimaryKey('network_id', 'position', blank=True, editable=False, primary_key=True, serialize=False)),
                ('position', models.BigIntegerField(help_text='Block number × 2**24 + index of the log in its block.')),
                ('block_number', models.BigIntegerField()),
                ('transaction_index', models.IntegerField()),
                ('address', models.BigIntegerField()),
                ('event', models.BigIntegerField(help_text='Key of the address and topic 0 together.', null=True)),
                ('topic0', models.BigIntegerField(null=True)),
                ('topic1', models.BigIntegerField(null=True)),
                ('topic2', models.BigIntegerField(null=True)),
                ('topic3', models.BigIntegerField(null=True)),
                ('network', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
        ),
        migrations.CreateModel(
            name='PooledTransaction',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hash', models.BinaryField(max_length=32)),
                ('sender', models.BinaryField(max_length=20)),
                ('nonce', models.DecimalField(decimal_places=0, max_digits=20)),
                ('type', models.SmallIntegerField()),
                ('cost', models.DecimalField(decimal_places=0, help_text='Wei that the sender needs: value, and the highest fees.', max_digits=160)),
                ('fee', models.DecimalField(decimal_places=0, help_text='Highest wei per gas.', max_digits=78)),
                ('tip', models.DecimalField(decimal_places=0, help_text='Highest priority fee, per gas.', max_digits=78)),
                ('blob_fee', models.DecimalField(decimal_places=0, help_text='Highest wei per blob gas, or 0.', max_digits=78)),
                ('authorities', django.contrib.postgres.fields.ArrayField(base_field=models.BinaryField(max_length=20), help_text='Signers of its authorizations (EIP-7702).', size=None)),
                ('size', models.IntegerField(help_text='Bytes of `raw`.')),
                ('raw', models.BinaryField(help_text='As EIP-2718 encodes it, without a sidecar.')),
                ('network_form', models.BinaryField(db_default=b'', help_text='The same with its sidecar, as it was sent. Empty for other types.')),
                ('document', models.BinaryField(help_text='The pending transaction object as JSON.')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('network', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
        ),
        migrations.CreateModel(
            name='QuarantinedBlock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hash', models.BinaryField(max_length=32)),
                ('number', models.BigIntegerField()),
                ('reason', models.TextField()),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('network', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quarantined_blocks', to='networks.network')),
                ('upstream', models.ForeignKey(help_text='The upstream that sent it. None: it was deleted.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='quarantined_blocks', to='networks.upstream')),
            ],
        ),
        migrations.CreateModel(
            name='Reorganisation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('fork_number', models.BigIntegerField(help_text='Number of the newest block of both branches.')),
                ('old_hash', models.BinaryField(help_text='The head before.', max_length=32)),
                ('new_hash', models.BinaryField(help_text='The head afterwards.', max_length=32)),
                ('depth', models.PositiveIntegerField(help_text='Number of blocks that became side blocks.')),
                ('added', models.PositiveIntegerField(help_text='Number of blocks that became canonical. 0: the head went back.')),
                ('network', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='reorganisations', to='networks.network')),
            ],
        ),
        migrations.CreateModel(
            name='StorageVersion',
            fields=[
                ('pk', models.CompositePrimaryKey('network_id', 'address', 'slot', 'block_number', blank=True, editable=False, primary_key=True, serialize=False)),
                ('address', models.BinaryField(max_length=20)),
                ('slot', models.BinaryField(help_text='32 bytes, big-endian.', max_length=32)),
                ('block_number', models.BigIntegerField()),
                ('value', models.BinaryField(help_text='Big-endian without leading zeros; empty is zero.', max_length=32)),
                ('network', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
            options={
                'verbose_name': 'storage version',
            },
        ),
        migrations.CreateModel(
            name='Transaction',
            fields=[
                ('pk', models.CompositePrimaryKey('block_id', 'index', blank=True, editable=False, primary_key=True, serialize=False)),
                ('index', models.IntegerField()),
                ('hash', models.BinaryField(max_length=32)),
                ('document', models.BinaryField(help_text='The transaction object as JSON.')),
                ('block', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='transactions', to='nodeapi.block')),
            ],
        ),
        migrations.CreateModel(
            name='TransactionRecord',
            fields=[
                ('pk', models.CompositePrimaryKey('block_id', 'index', blank=True, editable=False, primary_key=True, serialize=False)),
                ('index', models.IntegerField(help_text="The transaction's place in the block.")),
                ('calls_size', models.BigIntegerField(help_text='Size in bytes of the callTracer answer.')),
                ('prestate_size', models.BigIntegerField(help_text='Size in bytes of the prestateTracer answer.')),
                ('receipt', models.BinaryField(help_text='The receipt object.')),
                ('calls', models.BinaryField(help_text='The callTracer answer, without the input.')),
                ('prestate', models.BinaryField(help_text="The prestateTracer answer, without the contracts' code.")),
                ('details', models.BinaryField(help_text='Additional data for the answers of other tracers.')),
                ('block', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='records', to='nodeapi.block')),
            ],
            options={
                'verbose_name': 'trace record',
            },
        ),
        migrations.CreateModel(
            name='TrieNode',
            fields=[
                ('pk', models.CompositePrimaryKey('network_id', 'owner', 'path', blank=True, editable=False, primary_key=True, serialize=False)),
                ('owner', models.BinaryField(help_text="Empty: the state trie; keccak(address): that account's storage.", max_length=32)),
                ('path', models.BinaryField(help_text='The nibbles from the root to the node, one per byte.', max_length=64)),
                ('node', models.BinaryField(help_text='RLP of the node.')),
                ('network', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
        ),
        migrations.CreateModel(
            name='TrieNodeVersion',
            fields=[
                ('pk', models.CompositePrimaryKey('network_id', 'owner', 'path', 'block_number', blank=True, editable=False, primary_key=True, serialize=False)),
                ('owner', models.BinaryField(help_text='As in a trie node.', max_length=32)),
                ('path', models.BinaryField(help_text='As in a trie node.', max_length=64)),
                ('block_number', models.BigIntegerField()),
                ('node', models.BinaryField(help_text='None: there was no node.', null=True)),
                ('network', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
            options={
                'verbose_name': 'trie node version',
            },
        ),
        migrations.CreateModel(
            name='AccountVersion',
            fields=[
                ('pk', models.CompositePrimaryKey('network_id', 'address', 'block_number', blank=True, editable=False, primary_key=True, serialize=False)),
                ('address', models.BinaryField(max_length=20)),
                ('block_number', models.BigIntegerField()),
                ('nonce', models.DecimalField(decimal_places=0, help_text='None: no account.', max_digits=20, null=True)),
                ('balance', models.DecimalField(decimal_places=0, help_text='Wei.', max_digits=78, null=True)),
                ('code_hash', models.BinaryField(help_text='None: no code.', max_length=32, null=True)),
                ('storage_root', models.BinaryField(help_text='None: the root of the empty trie.', max_length=32, null=True)),
                ('network', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
            options={
                'verbose_name': 'account version',
                'indexes': [django.contrib.postgres.indexes.BrinIndex(autosummarize=True, fields=['block_number'], name='account_version_block')],
            },
        ),
        migrations.CreateModel(
            name='Appearance',
            fields=[
                ('pk', models.CompositePrimaryKey('network_id', 'address', 'block_number', blank=True, editable=False, primary_key=True, serialize=False)),
                ('address', models.BinaryField(help_text='Empty: transactions without a complete trace record.', max_length=20)),
                ('block_number', models.BigIntegerField()),
                ('places', models.BinaryField(help_text='Four bytes for each transaction: 16 × its index + the roles.')),
                ('is_creation', models.BooleanField(help_text='Whether one of the transactions created the contract.')),
                ('is_author', models.BooleanField(help_text='Whether the account got a mining reward of the block.')),
                ('network', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='networks.network')),
            ],
            options={
                'indexes': [django.contrib.postgres.indexes.BrinIndex(autosummarize=True, fields=['block_number'], name='appearance_block'), models.Index(condition=models.Q(('is_creation', True)), fields=['network', 'address', 'block_number'], name='appearance_creation')],
            },
        ),
        migrations.AddIndex(
            model_name='block',
            index=models.Index(fields=['network', 'number'], name='block_number'),
        ),
        migrations.AddIndex(
            model_name='block',
            index=models.Index(condition=models.Q(('is_canonical', False)), fields=['network', 'number'], name='block_side'),
        ),
        migrations.AddConstraint(
            model_name='block',
            constraint=models.UniqueConstraint(fields=('network', 'hash'), name='block_hash'),
        ),
        migrations.AddConstraint(
            model_name='block',
            constraint=models.UniqueConstraint(condition=models.Q(('is_canonical', True)), fields=('network', 'number'), name='block_canonical_number'),
        ),
        migrations.AddIndex(
            model_name='abientry',
            index=models.Index(fields=['key', 'abi'], name='abi_entry_key'),
        ),
        migrations.AddIndex(
            model_name='importtiming',
            index=models.Index(fields=['network', 'at'], name='import_timing_time'),
        ),
        migrations.AddIndex(
            model_name='log',
            index=models.Index(fields=['network', 'address', 'block_number'], name='log_address'),
        ),
        migrations.AddIndex(
            model_name='log',
            index=models.Index(condition=models.Q(('event__isnull', False)), fields=['network', 'event', 'block_number'], name='log_event'),
        ),
        migrations.AddIndex(
            model_name='log',
            index=models.Index(condition=models.Q(('topic0__isnull', False)), fields=['network', 'topic0', 'block_number'], name='log_topic0'),
        ),
        migrations.AddIndex(
            model_name='log',
            index=models.Index(condition=models.Q(('topic1__isnull', False)), fields=['network', 'topic1', 'block_number'], name='log_topic1'),
        ),
        migrations.AddIndex(
            model_name='log',
            index=models.Index(condition=models.Q(('topic2__isnull', False)), fields=['network', 'topic2', 'block_number'], name='log_topic2'),
        ),
        migrations.AddIndex(
            model_name='log',
            index=models.Index(condition=models.Q(('topic3__isnull', False)), fields=['network', 'topic3', 'block_number'], name='log_topic3'),
        ),
        migrations.AddConstraint(
            model_name='pooledtransaction',
            constraint=models.UniqueConstraint(fields=('network', 'hash'), name='pooled_hash'),
        ),
        migrations.AddConstraint(
            model_name='pooledtransaction',
            constraint=models.UniqueConstraint(fields=('network', 'sender', 'nonce'), name='pooled_nonce'),
        ),
        migrations.AddConstraint(
            model_name='quarantinedblock',
            constraint=models.UniqueConstraint(fields=('network', 'hash', 'upstream'), name='quarantined_once'),
        ),
        migrations.AddIndex(
            model_name='reorganisation',
            index=models.Index(fields=['network', 'at'], name='reorganisation_time'),
        ),
        migrations.AddIndex(
            model_name='storageversion',
            index=django.contrib.postgres.indexes.BrinIndex(autosummarize=True, fields=['block_number'], name='storage_version_block'),
        ),
        migrations.AddIndex(
            model_name='transaction',
            index=models.Index(fields=['hash'], name='transaction_hash'),
        ),
        migrations.AddConstraint(
            model_name='transactionrecord',
            constraint=models.CheckConstraint(condition=models.Q(('calls_size__gte', 0), ('index__gte', 0), ('prestate_size__gte', 0)), name='record_sizes'),
        ),
        migrations.AddIndex(
            model_name='trienodeversion',
            index=django.contrib.postgres.indexes.BrinIndex(autosummarize=True, fields=['block_number'], name='trie_node_version_block'),
        ),
        migrations.RunSQL(_STORAGE),
        migrations.RunSQL(_RECORDS),
    ]
