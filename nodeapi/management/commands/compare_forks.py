"""`compare_forks`: execute stored blocks by the rules of another fork, and write a page."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED as FIRST
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evm.chain_config import UnknownForkName, fork_by_name
from networks.models import Network
from nodeapi.chain.database import connection_parameters
from nodeapi.fork_report.blocks import SurveyFailed, survey_blocks
from nodeapi.fork_report.page import report_page
from nodeapi.fork_report.survey import Survey
from nodeapi.management.block_range import block_range, require_executed

CHUNK_BLOCKS = 16
"""Blocks that a worker process executes at once. Progress is written after each chunk."""
WAITING = 2
"""Chunks for each worker process that are executed or wait."""


class Command(BaseCommand):
    help = (
        "Execute the transactions of stored blocks by the rules of another fork, each on "
        "the state that it really had, and write a page: what fails, gas before and "
        "after, by contract and function. Nothing is stored. The service and imports can "
        "run at the same time."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--network", required=True, metavar="SLUG", help="slug of the network"
        )
        parser.add_argument(
            "--blocks",
            required=True,
            type=block_range,
            metavar="A-B",
            help="the first and the last block, or one block",
        )
        parser.add_argument(
            "--fork",
            required=True,
            type=_fork,
            metavar="NAME",
            help="the fork, such as amsterdam",
        )
        parser.add_argument(
            "--output",
            required=True,
            type=Path,
            metavar="FILE",
            help="the HTML page, which is replaced if it exists",
        )
        parser.add_argument(
            "--workers",
            type=int,
            default=os.cpu_count() or 1,
            metavar="N",
            help="number of worker processes; by default that of the processors",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug, numbers = options["network"], options["blocks"]
        fork, output, workers = options["fork"], options["output"], options["workers"]
        network = Network.objects.filter(slug=slug).first()
        if network is None or network.head_number is None:
            raise CommandError(f"there is no network {slug!r} with blocks")
        require_executed(network, numbers)
        if numbers[-1] > network.head_number:
            raise CommandError(f"the newest block is {network.head_number}")
        if not output.parent.is_dir():
            raise CommandError(f"there is no folder {output.parent}")
        survey = Survey()
        try:
            for part in _surveys(network, fork, numbers, max(workers, 1)):
                survey.merge(part)
                self.stdout.write(
                    f"{survey.blocks} of {len(numbers)} blocks,"
                    f" {survey.transactions} transactions"
                )
        except SurveyFailed as error:
            raise CommandError(str(error)) from error
        except BrokenProcessPool as error:
            raise CommandError("a worker process was killed") from error
        page = report_page(survey, network.name, numbers, fork)
        output.write_text(page, encoding="utf-8")
        self.stdout.write(self.style.SUCCESS(f"wrote {output}"))


def _fork(name: str) -> str:
    try:
        return fork_by_name(name).name
    except UnknownForkName as error:
        raise ArgumentTypeError(str(error)) from error


def _surveys(
    network: Network, fork: str, numbers: range, workers: int
) -> Iterator[Survey]:
    """Yield the figures of parts of a range, in any order.

    Raises: SurveyFailed.
    """
    given = connection_parameters(), network.pk, network.genesis, fork
    chunks = (
        numbers[start : start + CHUNK_BLOCKS]
        for start in range(0, len(numbers), CHUNK_BLOCKS)
    )
    # Not forked: a child would close this process's connections.
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:

        def begin(count: int) -> set[Future[Survey]]:
            return {
                pool.submit(survey_blocks, *given, chunk)
                for chunk in islice(chunks, count)
            }

        waiting = begin(WAITING * workers)
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST)
                for future in done:
                    yield future.result()
                waiting |= begin(len(done))
        finally:
            pool.shutdown(cancel_futures=True)
