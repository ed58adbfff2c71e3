"""The deletion of a network in the background.

- `tables`: the tables with rows of a network, and the deletion of a batch of rows.
- `progress`: the estimated and deleted rows of each table.
- `requests`: the preview of a deletion, and its start.
- `job`: the job, which `manage.py follow` runs in a process of its own.
- `chain`: the deletion of a small chain whose network is kept.

Each batch is a short transaction that deletes rows by a key and stores the progress.
Therefore a killed job continues after its last batch, and no lock lasts longer than a
batch. The row of the network itself is deleted last. The code of contracts is kept,
because networks share it.
"""
