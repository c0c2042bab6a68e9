"""MultimodalVAE: the one model class. Any subset of the modalities in, any of them out."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from codevae import random
from codevae.axes import Float, Tensor
from codevae.batch import Batch
from codevae.distributions import Joint, Latent
from codevae.errors import InputError, listed
from codevae.methods.base import Bound, Experts, Method
from codevae.methods.codevae import CoDEVAE
from codevae.modality import Modality
from codevae.record import Recorded

Given = Iterable[str] | str | None


class MultimodalVAE(Recorded, nn.Module):
    """A variational autoencoder over several modalities, of which any may be missing, sample by sample.

    Arguments:
        modalities: list of `Modality`; `codevae.data.modalities(batch)` guesses them from data. The model keeps copies.
        latent_dim: D, the number of shared latent dimensions.
        method: how experts are aggregated and what is maximised (default: `CoDEVAE()`).
        seed: of the networks' first weights; None draws from the caller's generator.

    Example:
        >>> model = MultimodalVAE([Modality("rna", (4,)), Modality("protein", (2,))], latent_dim=3, seed=0)
        >>> batch = Batch({"rna": torch.zeros(5, 4), "protein": torch.zeros(5, 2)})
        >>> model.embed(batch, given=["protein"]).shape
        torch.Size([5, 3])
    """

    def __init__(self, modalities: Sequence[Modality], latent_dim: int = 64, method: Method | None = None, seed: int | None = None):
        super().__init__()
        modalities = [copy.deepcopy(modality) for modality in modalities]
        names = [modality.name for modality in modalities]
        if not names or len(set(names)) != len(names):
            raise InputError(f"MultimodalVAE(modalities): expected at least one, each with a name of its own, got {listed(names)}.")
        if isinstance(latent_dim, bool) or not isinstance(latent_dim, int) or latent_dim < 1:
            raise InputError(f"MultimodalVAE(latent_dim): expected a whole number of at least 1, got {latent_dim!r}.")
        method = copy.deepcopy(CoDEVAE() if method is None else method)
        self._arguments.update(modalities=modalities, method=method)
        self.names, self.latent_dim = names, latent_dim
        with random.seeded(seed):
            self.parts = nn.ModuleList(modality.build(latent_dim) for modality in modalities)
            self.method = method.build(
                names, latent_dim, {part.name: part.private_dim for part in modalities}, {part.name: part.size for part in modalities}
            )

    @property
    def modalities(self) -> dict[str, Modality]:
        """The modalities by name."""
        return dict(zip(self.names, self.parts, strict=True))  # type: ignore[arg-type]

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    # ------------------------------------------------------------------------------------------------ the way of the data

    def prepare(self, batch: Batch) -> Batch:
        """The batch in the model's order, checked; a modality that it lacks altogether is absent for every data point."""
        if not isinstance(batch, Batch):
            raise InputError(f"batch: expected a Batch, got {type(batch).__name__}; make one, Batch({{name: values}}).")
        unknown = [name for name in batch.names if name not in self.names]
        if unknown:
            raise InputError(
                f"batch: {listed(unknown)} is not a modality of this model, which has {listed(self.names)}; leave it out, or train anew."
            )
        values, entries = {}, {}
        for name, part in self.modalities.items():
            if name not in batch.values:
                values[name] = torch.zeros(len(batch), *part.shape, device=batch.device)
                entries[name] = torch.zeros(len(batch), *(1 for _ in part.shape), dtype=torch.bool, device=batch.device)
                continue
            values[name], entries[name] = batch.values[name], batch.entries[name]
            if values[name].shape[1:] != part.shape:
                raise InputError(
                    f"batch: {name!r} has values of shape {tuple(values[name].shape[1:])}, the model was made for {part.shape}."
                )
        if batch.names == self.names:
            return batch
        return Batch(values, entries, labels=batch.labels, ids=batch.ids)

    def encode(self, batch: Batch) -> Experts:
        """Each modality once, on its own: q(z | x_m) as (M, B, D), and q(s_m | x_m) as (B, P)."""
        locs, scales, private = [], [], {}
        for name, part in self.modalities.items():
            raw = part.encode(batch.values[name], batch.entries[name])
            width = self.latent_dim + part.private_dim
            if raw.shape != (len(batch), 2 * width):
                raise InputError(
                    f"encoder of {name!r}: expected ({len(batch)}, {2 * width}), a location and a log-scale for each of the "
                    f"{width} latent dimensions, got {tuple(raw.shape)}."
                )
            loc, scale = raw.chunk(2, -1)
            locs.append(loc[:, : self.latent_dim])
            scales.append(scale[:, : self.latent_dim])
            if part.private_dim:
                private[name] = self.method.expert(loc[:, self.latent_dim :], scale[:, self.latent_dim :])
        return Experts(self.method.expert(torch.stack(locs), torch.stack(scales)), private)

    def log_prob(self, batch: Batch, latent: Latent) -> Float[Tensor, "S K B M"]:
        """log p(x_m | z) of every modality that is there, one decoder call each; 0 where it is not."""
        scores = [
            part.likelihood.score(part.decode(latent.of(name)), batch.values[name], batch.entries[name])
            for name, part in self.modalities.items()
        ]
        return torch.stack(scores, -1)

    def forward(self, batch: Batch) -> Bound:
        """The method's bound of a prepared batch."""
        return self.method.bound(self, batch)

    # ------------------------------------------------------------------------------------------------ what one asks a model

    def infer(self, batch: Batch, given: Given = None) -> Joint:
        """q(z | x_given), with K = 1: from what is observed among `given`; the prior where that is nothing."""
        batch = self.prepare(batch).given(given)
        return self.method.posterior(self.encode(batch), batch.observed.unsqueeze(0))

    def decode(self, latent: Latent, to: Given = None, kind: str = "predict") -> dict[str, Tensor]:
        """Values (S, K, B, …) of each modality in `to` (default: all): "predict", "mean" or "draw"."""
        if kind not in ("predict", "mean", "draw"):
            raise InputError(f"decode(kind): expected 'predict', 'mean' or 'draw', got {kind!r}.")
        parts = {name: self.modalities[name] for name in self._names(to, "to")}
        return {name: getattr(part.likelihood, kind)(part.decode(latent.of(name))) for name, part in parts.items()}

    def embed(self, batch: Batch, given: Given = None, samples: int | None = None, chunk: int = 1024, seed: int | None = 0) -> Tensor:
        """The posterior mean of z, (N, D); with `samples`, that many draws (S, N, D).

        Arguments:
            batch: any data points, complete or not.
            given: which modalities may be used (default: all that are observed).
            samples: how many draws instead of the mean.
            chunk: how many data points are in memory at a time.
            seed: of the draws.
        """

        def run(part: Batch) -> Tensor:
            q = self.infer(part, given)
            return q.shared.mean[0] if samples is None else q.shared.draw(samples)[:, 0]

        with self.asked(seed):
            return self._stream(run, batch, chunk, 0 if samples is None else 1)

    def translate(
        self, batch: Batch, given: Given = None, to: str = "", samples: int | None = None, chunk: int = 1024, seed: int | None = 0
    ) -> Tensor:
        """What modality `to` looks like given others: (N, …) decoded from the posterior mean, or S draws (S, N, …).

        Arguments:
            batch: any data points.
            given: which modalities may be used (default: all observed ones but `to`).
            to: the modality to predict.
            samples: how many draws of z and x instead of the prediction from the mean.
            chunk: how many data points are in memory at a time.
            seed: of the draws.
        """
        self._names(to, "to")
        sources = [name for name in self.names if name != to] if given is None else given

        def run(part: Batch) -> Tensor:
            q = self.infer(part, [name for name in self._names(sources, "given") if name in part.names])
            if samples is None:
                return self.decode(q.mean, to)[to][0, 0]
            return self.decode(q.draw(samples), to, "draw")[to][:, 0]

        with self.asked(seed):
            return self._stream(run, batch, chunk, 0 if samples is None else 1)

    def impute(self, batch: Batch, given: Given = None, samples: int | None = None, chunk: int = 1024, seed: int | None = 0) -> Batch:
        """The batch with every absent entry filled and every observed one kept.

        Arguments:
            batch: any data points.
            given: which modalities may be used (default: all that are observed).
            samples: fill with the mean over this many posterior draws (for categories the likeliest on average) instead of the
                prediction from the posterior mean.
            chunk: how many data points are in memory at a time.
            seed: of the draws.
        """
        batch = self.prepare(batch)
        filled = {}
        with self.asked(seed):
            for name in self.names:

                def run(part: Batch, modality: Modality = self.modalities[name]) -> Tensor:
                    q = self.infer(part, given)
                    latent = q.mean if samples is None else q.draw(samples)
                    return modality.likelihood.pool(modality.decode(latent.of(modality.name)))[0]

                values = batch.values[name]
                guess = self._stream(run, batch, chunk, 0).to(values.device)
                filled[name] = torch.where(batch.entries[name], values, _stored_as(guess, values.dtype))
        return Batch(filled, labels=batch.labels, ids=batch.ids)

    def generate(self, count: int, sampler: Any = None, draw: bool = False, chunk: int = 1024, seed: int | None = 0) -> Batch:
        """New data points: z from the prior (or from a fitted `sampler`), then a value of every modality.

        Arguments:
            count: how many.
            sampler: an object with `draw(count)` → (N, D) shared codes, such as one of `codevae.samplers`.
            draw: whether the values are drawn given z, or predicted from it.
            chunk: how many are in memory at a time.
            seed: of the draws.
        """
        if count < 1:
            raise InputError(f"generate(count): expected at least 1, got {count}.")
        pieces: dict[str, list[Tensor]] = {name: [] for name in self.names}
        with self.asked(seed):
            for start in range(0, count, chunk):
                latent = self._prior_draw(min(chunk, count - start), sampler)
                for name, value in self.decode(latent, kind="draw" if draw else "predict").items():
                    pieces[name].append(value[0, 0].cpu())
        return Batch({name: torch.cat(values) for name, values in pieces.items()})

    def _prior_draw(self, count: int, sampler: Any) -> Latent:
        prior = self.method.joint_prior()

        def many(distribution: Any) -> Tensor:
            return distribution.draw(count).movedim(0, 2).reshape(1, 1, count, -1)

        shared = many(prior.shared) if sampler is None else sampler.draw(count).to(self.device).reshape(1, 1, count, -1)
        return Latent(shared, {name: many(p) for name, p in prior.private.items()})

    def calibrate(self, data: Batch) -> None:
        """Learn the likelihoods' units from training data, after checking that each can describe its values."""
        data = self.prepare(data)
        for name, part in self.modalities.items():
            wrong = part.likelihood.wrong(data.values[name], data.entries[name])
            if wrong:
                kind = type(part.likelihood).__name__
                raise InputError(f"{name!r}: {kind} does not fit the data: {wrong}; choose another likelihood or mend the data.")
            part.likelihood.calibrate(data.values[name], data.entries[name])

    # ------------------------------------------------------------------------------------------------ helpers

    def _names(self, names: Given, argument: str) -> list[str]:
        if names is None:
            return list(self.names)
        asked = [names] if isinstance(names, str) else list(names)
        unknown = [name for name in asked if name not in self.names]
        if unknown:
            raise InputError(f"{argument}: {listed(unknown)} is not a modality of this model, which has {listed(self.names)}.")
        return [name for name in self.names if name in asked]

    @contextmanager
    def asked(self, seed: int | None) -> Iterator[None]:
        """No gradients, evaluation mode, seeded; everything as before afterwards."""
        modes = [(module, module.training) for module in self.modules()]  # one by one: a part may be kept in evaluation mode
        self.eval()
        try:
            with torch.no_grad(), random.seeded(seed):
                yield
        finally:
            for module, training in modes:
                module.training = training

    def _stream(self, run: Callable[[Batch], Tensor], batch: Batch, chunk: int, axis: int) -> Tensor:
        """`run` over the batch, `chunk` data points at a time, gathered on the host."""
        if not len(batch):
            raise InputError("batch: it has no data points.")
        return torch.cat([run(batch[start : start + chunk].to(self.device)).cpu() for start in range(0, len(batch), chunk)], axis)


def _stored_as(guess: Tensor, dtype: torch.dtype) -> Tensor:
    """A prediction in the stored type: the nearest whole number that it can hold."""
    if dtype.is_floating_point or not guess.is_floating_point():
        return guess.to(dtype)
    if dtype == torch.bool:
        return guess > 0.5
    limits = torch.iinfo(dtype)
    return guess.round().clamp(limits.min, limits.max).to(dtype)
