"""π in its three forms, against enumerating the subsets of every set of observed modalities."""

import pytest
import torch
from torch.testing import assert_close

from codevae.subset_weights import FORMS, ByModality, BySize, Table
from codevae.subsets import all_subsets, count, pack, powerset
from test_subsets import chi_square


def make(form, modalities, spread=1.0):
    weights = FORMS[form](modalities)
    with torch.no_grad():
        weights.logits.copy_(spread * torch.randn(weights.logits.shape))
    return weights


def score(weights, subset):
    """log π of a subset up to a constant, as the module's documentation defines it."""
    if isinstance(weights, Table):
        return weights.logits[sum(2**m for m in subset) - 1]
    if isinstance(weights, BySize):
        return weights.logits[len(subset) - 1]
    return weights.logits[list(subset)].sum()


def enumerate_within(weights, observed):
    """The codes of the subsets of `observed` (M,) and their probabilities."""
    inside = [row for row in powerset(len(observed)) if (row <= observed).all()]
    scores = torch.stack([score(weights, row.nonzero().flatten().tolist()) for row in inside])
    return [int(pack(row)) for row in inside], scores.softmax(0)


every_form = pytest.mark.parametrize("form", FORMS)


@every_form
@pytest.mark.parametrize("modalities", [1, 2, 3, 4])
def test_probabilities_and_entropy_are_those_of_the_enumeration(form, modalities, double):
    weights, patterns = make(form, modalities), powerset(modalities)
    plan = all_subsets(patterns)
    log_prob, entropy = weights.log_prob(plan.mask, patterns), weights.entropy(patterns)
    for b, observed in enumerate(patterns):
        codes, probabilities = enumerate_within(weights, observed)
        assert_close(log_prob[[code - 1 for code in codes], b].exp(), probabilities)
        assert_close(entropy[b], -(probabilities * probabilities.log()).sum())
    slopes = []
    for value in (entropy, torch.stack([-(p * p.log()).sum() for p in (enumerate_within(weights, row)[1] for row in patterns)])):
        slopes.append(torch.autograd.grad(value.sum(), weights.logits, retain_graph=True)[0])
    assert_close(*slopes)


@every_form
def test_it_starts_uniform(form):
    weights, patterns = FORMS[form](4), powerset(4)
    plan = all_subsets(patterns)
    log_prob = torch.where(plan.share > 0, weights.log_prob(plan.mask, patterns), -torch.inf)
    assert_close(log_prob.exp(), torch.where(plan.share > 0, 1 / count(patterns), 0.0))
    assert_close(weights.entropy(patterns), count(patterns).log(), rtol=1e-5, atol=1e-5)


@every_form
def test_draws_have_the_frequencies_of_the_enumeration(form):
    weights, patterns = make(form, 4), powerset(4)
    drawn = pack(weights.draw(patterns, 4000))
    values = []
    for b, observed in enumerate(patterns):
        codes, probabilities = enumerate_within(weights, observed)
        values.append(chi_square(drawn[:, b], torch.zeros(16).index_put((torch.tensor(codes),), probabilities.detach())))
    assert min(values) > 1e-4


@every_form
def test_a_point_that_has_nothing(form):
    weights, nothing = make(form, 3), torch.zeros(2, 3, dtype=torch.bool)
    assert torch.equal(weights.entropy(nothing), torch.zeros(2))
    assert torch.equal(weights.log_prob(nothing.unsqueeze(0), nothing), torch.zeros(1, 2))
    assert not weights.draw(nothing, 5).any()
    (weights.entropy(nothing).sum() + weights.log_prob(nothing.unsqueeze(0), nothing).sum()).backward()
    assert not weights.logits.grad.any()


@every_form
@pytest.mark.parametrize("value", [-1e4, -200.0, 200.0, 1e4])
@pytest.mark.parametrize("one_of_them", [False, True])
def test_extreme_logits(form, value, one_of_them):
    weights, patterns = FORMS[form](3), powerset(3)
    with torch.no_grad():
        weights.logits[0 if one_of_them else slice(None)] = value
    plan = all_subsets(patterns)
    log_prob, entropy = weights.log_prob(plan.mask, patterns), weights.entropy(patterns)
    total = torch.where(plan.share > 0, log_prob.exp(), 0.0).sum(0)
    assert_close(total, torch.ones(7), rtol=2e-3, atol=0)  # 1e4 has seven digits
    assert ((entropy > -2e-3) & (entropy < count(patterns).log() + 2e-3)).all()
    (torch.where(plan.share > 0, log_prob, 0.0).sum() + entropy.sum()).backward()
    assert torch.isfinite(log_prob).all()
    assert torch.isfinite(weights.logits.grad).all()
    drawn = weights.draw(patterns, 100)
    assert drawn.any(-1).all()
    assert (drawn <= patterns).all()


@every_form
def test_extreme_logits_have_the_entropy_of_the_enumeration(form, double):
    for value in (-300.0, 300.0):
        weights, patterns = FORMS[form](3), powerset(3)
        with torch.no_grad():
            weights.logits[0] = value
        for observed, entropy in zip(patterns, weights.entropy(patterns), strict=True):
            _, probabilities = enumerate_within(weights, observed)
            assert_close(entropy, torch.special.entr(probabilities).sum(), rtol=1e-6, atol=1e-10)


def test_frozen_ones_do_not_learn():
    assert not any(FORMS[form](3, learned=False).logits.requires_grad for form in FORMS)
    assert [FORMS[form](4).logits.numel() for form in ("table", "by_size", "by_modality")] == [15, 4, 4]


def test_by_modality_needs_no_enumeration():
    weights, observed = ByModality(40), torch.ones(1, 40, dtype=torch.bool)
    assert weights.entropy(observed).item() == pytest.approx(40 * torch.tensor(2.0).log().item(), rel=1e-6)
    assert weights.draw(observed, 2000).float().mean().item() == pytest.approx(0.5, abs=0.01)
    assert BySize(40).entropy(observed).item() == pytest.approx(40 * torch.tensor(2.0).log().item(), rel=1e-5)
