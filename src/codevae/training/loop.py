"""The loop, readable from top to bottom.

A step is determined by the weights, the seed and its number: it draws from (seed, step), and its data points are those of
(seed, epoch). So a run that was killed goes on from its last state as if nothing had happened; on a CPU, bit for bit.
"""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric

from codevae import random
from codevae.axes import Tensor
from codevae.batch import Batch
from codevae.errors import Diverged, InputError, Interrupted
from codevae.methods import Bound
from codevae.model import MultimodalVAE
from codevae.training.guard import Guard
from codevae.training.history import History
from codevae.training.progress import Progress
from codevae.training.run import Run, load_tensors, put_weights, save_tensors
from codevae.training.settings import Settings
from codevae.training.signals import Stop

DRAWS, CHECKS = 1, 2  # purposes of a derived seed


def launched(settings: Settings) -> Fabric:
    """Devices, precision and processes; with several devices this starts the others, which run the same program to this point."""
    try:
        fabric = Fabric(accelerator=settings.accelerator, devices=settings.devices, precision=settings.precision)  # type: ignore[arg-type]
        if settings.devices > 1:
            fabric.launch()
    except (RuntimeError, ValueError, TypeError, ImportError) as error:
        asked = f"accelerator={settings.accelerator!r}, devices={settings.devices}, precision={settings.precision!r}"
        raise InputError(
            f"fit: {asked} cannot be had here ({' '.join(str(error).split())[:200]}); leave them out, or choose others."
        ) from error
    return fabric


class Training:
    """The state of a training, and the loop."""

    def __init__(
        self, fabric: Fabric, model: MultimodalVAE, data: Batch, checked: Batch | None, settings: Settings, run: Run | None, progress: bool
    ):
        self.fabric, self.settings, self.run, self.shown = fabric, settings, run, progress
        self.model, self.data, self.checked = model, data, checked
        self.step, self.best, self.best_step, self.waited = 0, -math.inf, 0, 0
        self.history = History()
        self.best_weights: dict[str, Tensor] | None = None
        self.totals: Tensor | None = None

    def go(self, about: dict[str, Any] | None = None, tensors: dict[str, Tensor] | None = None) -> History:
        """Train to the end, from the start or from a saved state."""
        s = self.settings
        adam = torch.optim.AdamW if s.weight_decay else torch.optim.Adam
        fused = self.fabric.device.type == "cuda"
        optimizer = adam(self.model.parameters(), lr=s.learning_rate, weight_decay=s.weight_decay, fused=fused)
        with random.seeded(s.seed), random.sliced(self.fabric.global_rank, self.fabric.world_size), Stop() as stop:
            self.module, self.optimizer = self.fabric.setup(self.model, optimizer)
            if about is not None and tensors is not None:
                self._restore(about, tensors)
            self._loop(stop)
        self._finish()
        return self.history

    def _loop(self, stop: Stop) -> None:
        s, names = self.settings, self.model.names
        guard = Guard(names, every=1 if self.fabric.device.type == "cpu" else 20)
        saved = time.monotonic()
        self.module.train()
        with Progress(self.shown and self.fabric.is_global_zero, s.steps, len(names)) as bar:
            for batch in self._batches():
                bound = self._update(batch, guard)
                self._add(bound)
                at_end = self.step % s.interval == 0 or self.step == s.steps
                self._look(guard, at_end or stop.asked)
                if at_end:
                    self._evaluate()
                    bar.row(self.history.rows[-1])
                bar.advance(self.step)
                if stop.asked or (at_end and (time.monotonic() - saved > s.save_every)):
                    self._save()
                    saved = time.monotonic()
                if stop.asked:
                    raise Interrupted(
                        f"stopped after step {self.step} of {s.steps}" + (f"; resume {self.run.path} goes on" if self.run else "")
                    )
                if s.patience is not None and self.waited >= s.patience:
                    return

    def _batches(self) -> Iterator[Batch]:
        """The batches that are still to come, this process's slice of each; the last of an epoch is padded by absent points."""
        s, world, rank = self.settings, self.fabric.world_size, self.fabric.global_rank
        per_epoch, width = math.ceil(len(self.data) / s.batch_size), math.ceil(s.batch_size / world)
        while self.step < s.steps and not (s.patience is not None and self.waited >= s.patience):
            epoch, start = divmod(self.step, per_epoch)
            if start == 0 or not hasattr(self, "order"):
                self.order = torch.from_numpy(random.order(len(self.data), s.seed, epoch))
                self.model.method.at(epoch)
            rows = self.order[start * s.batch_size : (start + 1) * s.batch_size]
            yield self.data[rows].padded(width * world)[rank * width : (rank + 1) * width].to(self.fabric.device)

    def _update(self, batch: Batch, guard: Guard) -> Bound:
        """One step of the optimiser."""
        s = self.settings
        torch.manual_seed(random.derive(s.seed, DRAWS, self.step))
        for group in self.optimizer.param_groups:
            group["lr"] = s.rate(self.step)
        self.optimizer.zero_grad()
        bound = self.module(batch)
        points = self.fabric.all_reduce(bound.plan.points.sum().float(), reduce_op="mean") if self.fabric.world_size > 1 else None
        self.fabric.backward(bound.loss(points))
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters() if p.grad is not None])
        self.step += 1
        guard.watch(self.step, bound, norm)
        if guard.every == 1:
            self._look(guard, True)  # before the weights move
        if s.clip is not None:
            torch.nn.utils.clip_grads_with_norm_(self.model.parameters(), s.clip, norm)
        self.optimizer.step()
        return bound

    def _look(self, guard: Guard, always: bool) -> None:
        wrong = guard.look(self.step, always)
        if not wrong:
            return
        self._write_history()
        if self.best_weights is not None:
            self.model.load_state_dict(self.best_weights)
            raise Diverged(f"{wrong} The weights of step {self.best_step}, the best so far, were kept.")
        kept = self.run is not None and self.run.state_file.is_file()
        raise Diverged(f"{wrong} {'Those of the last saved state were kept.' if kept else 'No weights had been kept by then.'}")

    @torch.no_grad()
    def _add(self, bound: Bound) -> None:
        """Sums since the last evaluation: [value, bonus × points, points], and Σ L_k, count by subset size."""
        plan, applies = bound.plan, bound.plan.share > 0
        sizes = torch.nn.functional.one_hot(plan.mask.sum(-1), plan.mask.shape[-1] + 1).to(bound.value.dtype)[..., 1:]
        each = torch.where(applies, bound.reconstruction.sum(-1) - bound.divergence, 0.0)
        by_size = torch.einsum("kb,kbm->m", each, sizes)
        count = torch.einsum("kb,kbm->m", applies.to(each.dtype), sizes)
        points = plan.points.sum().to(each.dtype)
        now = torch.cat([torch.stack([bound.value.sum(), bound.bonus * points, points]), by_size, count]).double()
        self.totals = now if self.totals is None else self.totals + now

    def _evaluate(self) -> None:
        """A row of the history; the weights are kept if the validation bound is the best so far."""
        totals = torch.as_tensor(self.fabric.all_reduce(self.totals, reduce_op="sum")).tolist()  # type: ignore[arg-type]
        (value, bonus, points), modalities = totals[:3], len(self.model.names)
        row: dict[str, Any] = {
            "step": self.step,
            "epoch": self.step / math.ceil(len(self.data) / self.settings.batch_size),
            "bound": (value + bonus) / max(points, 1),
        }
        for size, (total, count) in enumerate(zip(totals[3 : 3 + modalities], totals[3 + modalities :], strict=True), 1):
            row[f"bound_of_{size}"] = total / count if count else math.nan
        self.totals = None
        if self.checked is not None:
            row["validation"] = self._check_bound(self.checked)
            if row["validation"] > self.best:
                self.best, self.best_step, self.waited = row["validation"], self.step, 0
                self.best_weights = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
                if self.run and self.fabric.is_global_zero:
                    self.run.save_weights(self.model, best=True)
            else:
                self.waited += 1
        self.model.eval()
        row |= self.model.method.facts(self.model, self.data[:512].to(self.fabric.device))
        self.model.train()
        self.history.rows.append(row)

    @torch.no_grad()
    def _check_bound(self, data: Batch) -> float:
        """The bound of held-out data, with the same draws every time."""
        self.model.eval()
        total, points = torch.zeros(2, dtype=torch.float64), self.settings.batch_size
        with random.seeded(random.derive(self.settings.seed, CHECKS)), random.sliced(0, 1), self.fabric.autocast():
            for start in range(0, len(data), points):
                bound = self.model(data[start : start + points].to(self.fabric.device))
                here = bound.plan.points.sum()
                total += torch.stack([bound.value.sum() + here * bound.bonus, here]).double().cpu()
        self.model.train()
        return float(total[0] / total[1].clamp(min=1))

    def _write_history(self) -> None:
        if self.run and self.fabric.is_global_zero:
            self.history.write(self.run.history_file)

    def _save(self) -> None:
        """Everything that going on needs, in one file."""
        if not self.run or not self.fabric.is_global_zero:
            return
        self._write_history()
        tensors = {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        for index, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{index}/{name}": tensor for name, tensor in state.items()}
        if self.totals is not None:
            tensors["totals"] = self.totals
        about = {"step": self.step, "best": self.best, "best_step": self.best_step, "waited": self.waited, "rows": self.history.rows}
        save_tensors(self.run.state_file, tensors, about)

    def _restore(self, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """The inverse of `_save`."""
        file = self.run.state_file if self.run else Path()
        try:
            self.step, self.best, self.best_step, self.waited = (about[name] for name in ("step", "best", "best_step", "waited"))
            self.history = History(about["rows"])
        except KeyError as error:
            raise InputError(f"{file}: damaged, {error} is missing; restore it from a copy, or train anew.") from error
        put_weights(self.model, {name[6:]: tensor for name, tensor in tensors.items() if name.startswith("model/")}, file)
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimizer/"):
                _, index, key = name.split("/")
                state.setdefault(int(index), {})[key] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        self.totals = tensors["totals"].to(self.fabric.device) if "totals" in tensors else None
        if self.run and self.best_step and self.run.best_file.is_file():
            self.best_weights = load_tensors(self.run.best_file)

    def _finish(self) -> None:
        """The last weights and state are written; the model is left with its best weights."""
        if self.run and self.fabric.is_global_zero:
            self._save()
            self.run.save_weights(self.model)
        if self.best_weights is not None:
            self.model.load_state_dict(self.best_weights)
        self.model.method.after(self.model, self.data)
        if self.run and self.fabric.is_global_zero:
            self.run.save_weights(self.model, best=self.best_weights is not None)  # what `after` settled belongs to what `load` reads
        self.model.eval()
