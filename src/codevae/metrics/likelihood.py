"""log p(x) by importance sampling, with the posterior of any subset as the proposal.

    log p̂(x)   = log 1/S Σ_s exp[ Σ_m log p(x_m|z_s) + log p(z_s) − log q(z_s|x_k) ],   z_s ~ q(z|x_k)
    log p̂(x_m) = the same with the m-th term alone

Every proposal estimates the same number, from below in expectation; one that covers the posterior needs fewer samples. Private
latents take part by log p(s_m) − log q(s_m|x_m). β, w and ω never enter. Samples and data points are never on one axis: a sum over
the wrong one would average different data points, and look like a better model.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from codevae.axes import Float, Tensor
from codevae.batch import Batch
from codevae.distributions import Latent
from codevae.errors import InputError
from codevae.model import MultimodalVAE


@dataclass(frozen=True)
class LogLikelihood:
    """Estimates of every data point, in nats.

    Arguments:
        joint: (N,) log p of all that is observed.
        modalities: per modality (N,) log p(x_m), NaN where it is not observed.
        effective: (N,) the effective number of samples behind `joint`, (Σ w)² / Σ w²; near 1 the estimate is loose.
    """

    joint: Float[Tensor, "N"]
    modalities: dict[str, Tensor]
    effective: Float[Tensor, "N"]


def log_likelihood(
    model: MultimodalVAE,
    batch: Batch,
    given: Iterable[str] | str | None = None,
    samples: int = 1000,
    rows: int = 16384,
    seed: int | None = 0,
) -> LogLikelihood:
    """log p(x) of every data point, jointly and of each modality.

    Arguments:
        model: a trained model.
        batch: data points, complete or not; what is absent is integrated out.
        given: the subset whose posterior is the proposal (default: all that is observed).
        samples: S, how many draws a data point.
        rows: how many (draw, data point) pairs are in memory at a time.
        seed: of the draws.
    """
    if samples < 1:
        raise InputError(f"log_likelihood(samples): expected at least 1, got {samples}.")
    batch = model.prepare(batch)
    if not len(batch):
        raise InputError("batch: it has no data points.")
    batch.given(given)
    width = max(1, min(len(batch), rows // min(samples, 64)))
    sums = []
    with model.asked(seed):
        for start in range(0, len(batch), width):
            chunk = batch[start : start + width].to(model.device)
            sums.append(_chunk(model, chunk, given, samples, max(1, rows // width)).cpu())
    totals = torch.cat(sums, -1)  # (M+2, N)
    names = model.names
    absent = ~batch.observed.cpu()
    marginals = {name: totals[m].masked_fill(absent[:, m], math.nan) for m, name in enumerate(names)}
    effective = (2 * totals[-2] - totals[-1]).exp() * samples
    return LogLikelihood(totals[-2], marginals, effective)


def _chunk(model: MultimodalVAE, batch: Batch, given: Iterable[str] | str | None, samples: int, at_once: int) -> Float[Tensor, "terms B"]:
    """log-mean-exp over the samples of the M marginal weights, the joint weight, and twice the joint weight."""
    q, prior = model.infer(batch, given), model.method.joint_prior()
    total: Tensor | None = None
    for start in range(0, samples, at_once):
        latent = q.draw(min(at_once, samples - start))
        log_px = model.log_prob(batch, latent)[:, 0].double()  # (S,B,M)
        shared = (prior.shared.log_prob(latent.shared) - q.shared.log_prob(latent.shared))[:, 0].double()  # (S,B)
        private = _private(model, latent, q.private, prior.private, shared)  # (S,B,M)
        marginal = (log_px + private + shared.unsqueeze(-1)).movedim(-1, 0)  # (M,S,B)
        joint = (log_px + private).sum(-1) + shared
        terms = torch.cat([marginal, joint.unsqueeze(0), 2 * joint.unsqueeze(0)]).logsumexp(1)  # (M+2,B)
        total = terms if total is None else torch.logaddexp(total, terms)
    return torch.as_tensor(total) - math.log(samples)


def _private(model: MultimodalVAE, latent: Latent, q: dict, prior: dict, like: Tensor) -> Float[Tensor, "S B M"]:
    """log p(s_m) − log q(s_m|x_m) of every modality; 0 for one without private latents."""
    gains = [
        (prior[name].log_prob(latent.private[name]) - q[name].log_prob(latent.private[name]))[:, 0].double()
        if name in q
        else torch.zeros_like(like)
        for name in model.names
    ]
    return torch.stack(gains, -1)
