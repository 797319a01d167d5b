"""Two processes of one group that run what a test gives them, so that a file of tests starts them once."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.distributed as dist

SECONDS = 60  # each task computes little: what takes longer hangs


def _serve(rank: int, store: str, seconds: float, tasks: Connection) -> None:
    torch.set_num_threads(1)
    timeout = timedelta(seconds=seconds)
    dist.init_process_group(init_method=f"file://{store}", rank=rank, world_size=2, timeout=timeout)
    while (task := tasks.recv()) is not None:
        function, arguments = task
        try:
            tasks.send((function(rank, *arguments), None))
        except BaseException:
            tasks.send((None, traceback.format_exc()))
    dist.destroy_process_group()


class Pair:
    def __init__(self, seconds: float = 30) -> None:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        context = multiprocessing.get_context("spawn")  # the parent has opened the device
        self._folder = tempfile.TemporaryDirectory()
        store = os.path.join(self._folder.name, "store")
        self.tasks, theirs = zip(*(context.Pipe() for _ in range(2)), strict=True)
        self.processes = [
            context.Process(target=_serve, args=(rank, store, seconds, theirs[rank]), daemon=True) for rank in range(2)
        ]
        for process in self.processes:
            process.start()

    def start(self, rank: int, function: Callable[..., Any], *arguments: Any) -> None:
        self.tasks[rank].send((function, arguments))

    def finish(self, rank: int) -> Any:
        assert self.tasks[rank].poll(SECONDS), f"process {rank} hangs"
        result, error = self.tasks[rank].recv()
        assert error is None, f"process {rank}:\n{error}"
        return result

    def run(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What function(rank, *arguments) returned in each process."""
        try:
            for rank in range(2):
                self.start(rank, function, *arguments)
            ready = wait(self.tasks, SECONDS)
            assert ready, "both processes hang"
            first = self.tasks.index(ready[0])  # if one fails, the other waits for it
            results = {rank: self.finish(rank) for rank in (first, 1 - first)}
            return [results[0], results[1]]
        except BaseException:
            self.kill()
            raise

    @property
    def alive(self) -> bool:
        return all(process.is_alive() for process in self.processes)

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()
        self._folder.cleanup()

    def close(self) -> None:
        for tasks in self.tasks:
            tasks.send(None)
        for process in self.processes:
            process.join(SECONDS)
        self.kill()
