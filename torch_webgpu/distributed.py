"""``torch.distributed`` for webgpu: gloo carries CPU tensors as they are, webgpu tensors as copies in host memory."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d as c10d
from torch.utils._pytree import tree_any, tree_map

from torch_webgpu import device

# What a collective does with each of its tensor arguments, in their order: (i)nput, (o)utput or (b)oth. Only inputs are
# read from the device before, and only outputs are written to it afterwards.
_ROLES = {
    "allreduce": "b",
    "allreduce_coalesced": "b",
    "broadcast": "b",
    "reduce": "b",
    "allgather": "oi",
    "allgather_coalesced": "oi",
    "all_gather_single": "oi",
    "all_gather_single_coalesced": "oi",
    "reduce_scatter": "oi",
    "reduce_scatter_single": "oi",
    "reduce_scatter_single_coalesced": "oi",
    "alltoall": "oi",
    "all_to_all_single": "oi",
    "gather": "oi",
    "scatter": "oi",
    "send": "i",
    "recv": "o",
    "recv_anysource": "o",
}

# Names before torch 2.13, which callers may still use.
_OLD_NAMES = {
    "_allgather_base": "all_gather_single",
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "_reduce_scatter_base": "reduce_scatter_single",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
    "alltoall_base": "all_to_all_single",
}

_NO_TIMEOUT = timedelta(0)


def _on_device(value: Any) -> bool:
    return isinstance(value, Tensor) and value.device.type == "webgpu"


class _StagedWork(dist.Work):
    """A collective under way on host copies. Whoever learns first that it is done writes the outputs to the device."""

    def __init__(self, work: dist.Work, outputs: list[Tensor], write_back: Callable[[], None]) -> None:
        super().__init__()
        self._work = work
        self._outputs = outputs
        self._write_back: Callable[[], None] | None = write_back
        self._lock = threading.Lock()
        self._future: torch.futures.Future[list[Tensor]] | None = None

    def _finish(self) -> list[Tensor]:
        with self._lock:
            if self._write_back is not None:
                self._write_back()
                self._write_back = None
        return self._outputs

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        self._work.wait(timeout)
        self._finish()
        return True

    def is_completed(self) -> bool:
        done = self._work.is_completed()
        if done and self._work.exception() is None:
            self._finish()
        return done

    def is_success(self) -> bool:
        return self._work.is_success()

    def exception(self) -> Any:
        return self._work.exception()

    def _source_rank(self) -> int:
        return self._work._source_rank()

    source_rank = _source_rank

    def result(self) -> list[Tensor]:
        self.wait()
        return self._outputs

    def get_future(self) -> torch.futures.Future[list[Tensor]]:
        def finish(done: torch.futures.Future[Any]) -> list[Tensor]:
            done.value()  # raises what went wrong
            return self._finish()

        if self._future is None:
            self._future = self._work.get_future().then(finish)
        return self._future


class _ProcessGroup(dist.ProcessGroup):
    """Serves CPU tensors like a group of gloo alone, and webgpu tensors by staging. Its collectives are made below."""

    def __init__(self, store: dist.Store, rank: int, size: int, gloo: Any) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg]  # the one with a store does not serve subclasses
        self._store = store
        self._host = dist.ProcessGroup(store, rank, size)
        for group in (self, self._host):
            group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
            for kind in ("cpu", "webgpu"):
                group._register_backend(torch.device(kind), dist.ProcessGroup.BackendType.GLOO, gloo)

    def getBackendName(self) -> str:
        return "webgpu"

    def get_group_store(self) -> dist.Store:
        return self._store

    def barrier(self, *args: Any, **kwargs: Any) -> dist.Work:
        device.synchronize()
        return self._host.barrier(*args, **kwargs)

    def _roles(self, name: str, options: Any) -> str:
        root = getattr(options, "rootRank", None)  # without options, the root is a number among the arguments
        if name == "broadcast" and root is not None:
            return "i" if root == self.rank() else "o"
        if name == "reduce" and root is not None:
            return "b" if root == self.rank() else "i"
        return _ROLES[name]

    def _staged(self, name: str, *args: Any, **kwargs: Any) -> dist.Work:
        outputs: list[tuple[Tensor, Tensor]] = []  # on the device, on the host

        def stage(value: Any, role: str) -> Any:
            if not _on_device(value):
                return value
            host = torch.empty(value.shape, dtype=value.dtype) if role == "o" else value.detach().contiguous().cpu()
            if role != "i":
                outputs.append((value.detach(), host))
            return host

        options: Any = next((value for value in (*args, *kwargs.values()) if hasattr(value, "timeout")), None)
        roles = self._roles(name, options)
        staged = [tree_map(functools.partial(stage, role=role), arg) for arg, role in zip(args, roles, strict=False)]
        run = getattr(self._host, name)
        average = getattr(options, "reduceOp", None) == dist.ReduceOp.AVG
        if average:  # gloo has only the sum
            options.reduceOp = dist.ReduceOp.SUM
        try:
            work = run(*staged, *args[len(roles) :], **kwargs)
        finally:
            if average:
                options.reduceOp = dist.ReduceOp.AVG

        def write_back() -> None:
            for target, host in outputs:
                if average:
                    host.div_(self.size(), rounding_mode=None if host.is_floating_point() else "trunc")
                target.copy_(host)

        return _StagedWork(work, [target for target, _ in outputs], write_back)


def _collective(name: str) -> Callable[..., dist.Work]:
    def run(self: _ProcessGroup, *args: Any, **kwargs: Any) -> dist.Work:
        if not tree_any(_on_device, args):
            return getattr(self._host, name)(*args, **kwargs)
        return self._staged(name, *args, **kwargs)

    run.__name__ = name
    return run


for _name, _target in ({name: name for name in _ROLES} | _OLD_NAMES).items():
    setattr(_ProcessGroup, _name, _collective(_target))


def create(options: Any, _: Any = None) -> dist.ProcessGroup:
    """The group that `init_process_group` and `new_group` get for the backend "webgpu", the device's default."""
    # As init_process_group makes a group of gloo, so that CPU tensors are served as without the device.
    gloo = dist.ProcessGroupGloo(options.store, options.group_rank, options.group_size, timeout=options.timeout)
    gloo.options.global_ranks_in_group = options.global_ranks_in_group
    gloo.options.group_name = options.group_id
    gloo._set_sequence_number_for_group()
    if dist.get_debug_level() == dist.DebugLevel.DETAIL:
        gloo = c10d._create_process_group_wrapper(
            wrapped_pg=gloo,
            store_prefix=options.group_id,
            store=options.store,
            rank=options.group_rank,
            world_size=options.group_size,
            timeout=options.timeout,
        )
    return _ProcessGroup(options.store, options.group_rank, options.group_size, gloo)
