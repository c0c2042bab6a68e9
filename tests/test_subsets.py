"""Masks and their names, and plans: every subset of what is observed must count as much as it should."""

import itertools
import math
from collections import Counter

import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from codevae import random
from codevae.errors import InputError
from codevae.subset_weights import ByModality, BySize, Table
from codevae.subsets import (
    all_subsets,
    count,
    draw_conditioned,
    draw_uniform,
    drawn_subsets,
    earlier,
    name_of,
    names_of,
    pack,
    parse,
    powerset,
    unpack,
    weighted_subsets,
)

# ------------------------------------------------------------------------------------------------ masks and names


@pytest.mark.parametrize("modalities", [1, 2, 3, 6, 10])
def test_the_powerset_is_every_subset_once_in_the_order_of_its_code(modalities):
    mask = powerset(modalities)
    rows = {frozenset(row.nonzero().flatten().tolist()) for row in mask}
    every = {frozenset(held) for n in range(1, modalities + 1) for held in itertools.combinations(range(modalities), n)}
    assert rows == every
    assert len(mask) == 2**modalities - 1
    assert pack(mask).tolist() == list(range(1, 2**modalities))


def test_more_than_ten_modalities_are_not_enumerated():
    with pytest.raises(InputError, match=r"powerset of 11 modalities is not enumerated .*subsets=2"):
        powerset(11)


@given(st.lists(st.integers(0, 2**30 - 1), min_size=1, max_size=5))
def test_pack_and_unpack_are_inverse(codes):
    codes = torch.tensor(codes)
    mask = unpack(codes, 30)
    assert torch.equal(pack(mask), codes)
    assert torch.equal(unpack(pack(mask.view(1, -1, 30)), 30), mask.view(1, -1, 30))


def test_count_is_the_number_of_subsets():
    observed = torch.cat([powerset(4), torch.zeros(1, 4, dtype=torch.bool)])
    assert count(observed).tolist() == [sum(math.comb(n, c) for c in range(1, n + 1)) for n in observed.sum(1).tolist()]


names = st.lists(st.text(st.sampled_from("ab+\\ ,'é\n"), min_size=1, max_size=4), min_size=1, max_size=5, unique=True)


@given(names, st.data())
def test_names_survive_the_round_trip(names, data):
    held = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    ordered = [name for name in names if name in held]
    assert parse(name_of(ordered), names) == ordered
    assert parse(name_of(held), names) == ordered


@given(names)
def test_no_two_subsets_share_a_name(names):
    assert len(set(names_of(powerset(len(names)), names))) == 2 ** len(names) - 1


def test_names_read_as_one_would_write_them():
    assert names_of(powerset(2), ["mnist", "svhn"]) == ["mnist", "svhn", "mnist+svhn"]
    assert name_of(["CD4+", "b\\c"]) == "CD4\\++b\\\\c"
    with pytest.raises(InputError, match=r"subset 'svhn\+text': 'text' not among the modalities, 'mnist', 'svhn'"):
        parse("svhn+text", ["mnist", "svhn"])


# ------------------------------------------------------------------------------------------------ plans

GAPS = torch.tensor([[1, 1, 1], [1, 1, 0], [0, 0, 0], [0, 1, 1], [1, 1, 1], [0, 1, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1]]).bool()


def counted(plan):
    """How much each subset (by its code) counts for each data point: (K, B), row 0 for the empty one."""
    total = torch.zeros(2 ** plan.mask.shape[-1], plan.mask.shape[1], dtype=plan.share.dtype)
    return total.scatter_add(0, pack(plan.mask), plan.share)


def due(observed):
    """1 for every subset of what a data point has, by code."""
    mask = torch.cat([torch.zeros(1, observed.shape[1], dtype=torch.bool), powerset(observed.shape[1])])
    return ((mask.unsqueeze(1) <= observed).all(-1) & mask.any(-1, keepdim=True)).to(torch.get_default_dtype())


def check_frame(plan, observed):
    """What holds for every plan: subsets lie within what is observed, no share for an empty row, nothing for an empty point."""
    assert (plan.mask <= observed).all()
    assert ((plan.share > 0) <= plan.mask.any(-1)).all()
    assert torch.equal(plan.points, observed.any(-1))
    assert not plan.share[:, ~observed.any(-1)].any()


def test_all_subsets_count_once_each():
    plan = all_subsets(GAPS)
    check_frame(plan, GAPS)
    assert torch.equal(counted(plan), due(GAPS))
    assert torch.equal(plan.share.sum(0), count(GAPS))


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 20])
def test_drawn_subsets_are_balanced_and_without_replacement(rows):
    observed = torch.cat([GAPS] * 3)
    for _ in range(20):
        plan = drawn_subsets(observed, rows)
        check_frame(plan, observed)
        assert len(plan.mask) == min(rows, 7)
        codes = pack(plan.mask)
        for pattern in set(pack(observed).tolist()) - {0}:
            inside = pack(observed) == pattern
            available = 2 ** pattern.bit_count() - 1
            taken = min(rows, available)
            drawn = Counter()
            for column, shares in zip(codes[:, inside].T.tolist(), plan.share[:, inside].T.tolist(), strict=True):
                held = [code for code in column if code]
                assert len(held) == len(set(held)) == taken
                assert shares[:taken] == pytest.approx([available / taken] * taken)
                drawn.update(held)
            tally = [drawn[code] for code in range(1, 2**3) if code & pattern == code]
            assert max(tally) - min(tally) <= 1


@given(st.lists(st.integers(0, 4), max_size=30))
def test_earlier_counts_the_points_before_with_the_same_pattern(patterns):
    expected = [patterns[:i].count(pattern) for i, pattern in enumerate(patterns)]
    assert earlier(torch.tensor(patterns, dtype=torch.int64)).tolist() == expected


def orders(modalities):
    """Every order in which the powerset can be shuffled, as the uniform numbers that lead to it."""
    subsets = 2**modalities - 1
    for order in itertools.permutations(range(subsets)):
        yield (torch.tensor(order) + 0.5) / subsets


@pytest.mark.parametrize(
    ("modalities", "rows"), [(2, 1), (2, 2), (3, 2), pytest.param(3, 1, marks=pytest.mark.slow), pytest.param(3, 4, marks=pytest.mark.slow)]
)
def test_drawn_subsets_count_exactly_as_much_as_all_of_them(modalities, rows, monkeypatch):
    """The expectation over every possible permutation, not a sample of them; and the inclusion probability S_O / K_O."""
    observed = GAPS if modalities == 3 else GAPS[:, 1:]
    total, included, number = 0.0, 0.0, 0
    for numbers in orders(modalities):
        monkeypatch.setattr(random, "uniform", lambda shape, like, batch_axis=None, numbers=numbers: numbers)
        plan = drawn_subsets(observed, rows)
        total, included, number = total + counted(plan), included + (counted(plan) > 0).float(), number + 1
    assert_close(total / number, due(observed), rtol=1e-5, atol=1e-5)
    inclusion = count(observed).clamp(max=rows) / count(observed).clamp(min=1)
    assert_close((included / number)[1:], due(observed)[1:] * inclusion, rtol=1e-5, atol=1e-5)


def test_drawn_subsets_are_the_same_for_every_process():
    """The permutation is not sliced: with two processes each draws from the same order."""
    plans = []
    for rank in (0, 1):
        torch.manual_seed(3)
        with random.sliced(rank, 2):
            plans.append(drawn_subsets(GAPS, 2).mask)
    assert torch.equal(*plans)


def within_four_errors(draws, truth):
    """The share of means over the first axis that lie within four of their standard errors (and 1e-9 where nothing varies)."""
    error = draws.std(0) / len(draws) ** 0.5
    return ((draws.mean(0) - truth).abs() <= 4 * error + 1e-9).double().mean()


def weights_of(form, modalities, spread=1.0):
    weights = form(modalities)
    with torch.no_grad():
        weights.logits.copy_(spread * torch.randn(weights.logits.shape))
    return weights


@pytest.mark.parametrize("form", [Table, BySize, ByModality])
@pytest.mark.parametrize("baseline", [0.0, -100.0])
def test_plans_of_every_kind_sum_to_the_same_number(form, baseline, double):
    weights = weights_of(form, 3)
    value = torch.randn(8, len(GAPS)) * 5 - 100  # one number for each subset and data point

    def run(plan):
        return plan.sum(weights, value.repeat(1, plan.mask.shape[1] // len(GAPS)).gather(0, pack(plan.mask)), baseline).detach()

    truth = run(all_subsets(GAPS))
    uniformly = torch.stack([run(drawn_subsets(GAPS, 2)) for _ in range(500)])
    weighted = torch.cat([run(weighted_subsets(GAPS.repeat(100, 1), 2, weights)).view(100, -1) for _ in range(20)])  # 2,000 draws
    for draws in (uniformly, weighted):
        assert within_four_errors(draws, truth) == 1
        assert draws[:, 2].eq(0).all()  # the point that has nothing
    assert (uniformly.std(0).mean() < 10) == (baseline == -100.0)  # what the baseline is for


@pytest.mark.parametrize("uniform", [0.5, 1.0])
def test_weighted_subsets_with_twelve_modalities(uniform, double):
    observed = torch.rand(6, 12) < 0.7
    observed[0], observed[1] = True, False
    weights = weights_of(ByModality, 12)
    table = unpack(torch.arange(1, 2**12), 12)  # 4,095 subsets: enumerated here, and nowhere in the library
    slope = torch.randn(12)

    def level(mask):
        return (mask * slope).sum(-1).exp()

    within = (table.unsqueeze(1) <= observed).all(-1)
    scores = torch.where(within, (table * weights.logits).sum(-1, keepdim=True), -torch.inf)
    pi = torch.where(observed.any(-1), scores.softmax(0), 0.0)
    truth = (pi * level(table).unsqueeze(1)).sum(0).detach()
    often, draws = observed.repeat(100, 1), []
    for _ in range(20):
        plan = weighted_subsets(often, 4, weights, uniform)
        check_frame(plan, often)
        draws.append(plan.sum(weights, level(plan.mask), 1.0).detach().view(100, -1))
    draws = torch.cat(draws)
    assert within_four_errors(draws, truth) == 1
    assert draws[:, 1].eq(0).all()


def test_weighted_subsets_have_the_shares_they_were_drawn_with():
    weights = weights_of(Table, 3)
    plan = weighted_subsets(GAPS, 5, weights, uniform=0.25)
    pi = weights.log_prob(plan.mask, GAPS).exp()
    expected = 1 / (5 * (0.25 / count(GAPS).clamp(min=1) + 0.75 * pi))
    assert_close(plan.share, torch.where(GAPS.any(-1), expected, 0.0).detach())
    assert not plan.share.requires_grad


def test_a_baseline_changes_nothing_where_all_are_trained():
    weights, plan = weights_of(Table, 3), all_subsets(GAPS)
    value = torch.randn(7, len(GAPS))
    without, shifted = (plan.sum(weights, value, c) for c in (0.0, 50.0))
    assert_close(without, shifted, rtol=1e-5, atol=1e-4)
    slopes = [torch.autograd.grad(total.sum(), weights.logits)[0] for total in (without, shifted)]
    assert_close(*slopes, rtol=1e-4, atol=1e-4)


def test_what_does_not_apply_is_never_looked_at():
    weights, plan = weights_of(Table, 3), all_subsets(GAPS)
    value = torch.where(plan.share > 0, 1.0, torch.nan).requires_grad_()
    total = plan.sum(weights, value)
    assert_close(total, GAPS.any(-1).float())
    total.sum().backward()
    assert torch.isfinite(value.grad).all()
    assert torch.isfinite(weights.logits.grad).all()


def test_the_entropy_of_a_plan_is_averaged_over_the_points_that_have_something():
    weights = weights_of(Table, 3)
    gains = [weights.entropy(row[None])[0] - count(row[None]).log()[0] for row in GAPS if row.any()]
    assert_close(all_subsets(GAPS).entropy(weights), torch.stack(gains).mean())
    assert drawn_subsets(GAPS, 1).entropy(weights) == all_subsets(GAPS).entropy(weights)  # exact whatever is drawn
    assert all_subsets(GAPS[2:3]).entropy(weights) == 0


# ------------------------------------------------------------------------------------------------ draws of single subsets


def chi_square(codes, probabilities):
    """The p-value of the counts of each code against these probabilities (up to a factor)."""
    tally, expected = torch.bincount(codes.flatten(), minlength=len(probabilities)).double(), probabilities.double()
    held = expected > 0
    assert not tally[~held].any()
    expected = expected[held] / expected.sum() * tally.sum()
    return scipy.stats.chisquare(tally[held], expected).pvalue if held.sum() > 1 else 1.0


def test_uniform_draws():
    codes = pack(draw_uniform(GAPS, 4000))
    for b, allowed in enumerate(due(GAPS).T):
        assert codes[:, b].eq(0).all() if not GAPS[b].any() else chi_square(codes[:, b], allowed) > 1e-3


def test_conditioned_draws():
    logits = torch.tensor([-2.0, 0.5, 1.0])
    codes, mask = pack(draw_conditioned(logits, GAPS, 4000)), torch.cat([torch.zeros(1, 3, dtype=torch.bool), powerset(3)])
    for b, allowed in enumerate(due(GAPS).T):
        chance = torch.where(mask, logits.sigmoid(), (-logits).sigmoid())
        probability = allowed * torch.where(GAPS[b], chance, 1.0).prod(-1)
        assert codes[:, b].eq(0).all() if not GAPS[b].any() else chi_square(codes[:, b], probability) > 1e-3
    rare = draw_conditioned(torch.full((3,), -1e4), GAPS[:1], 3000)  # nearly never in, but one always is
    assert rare.sum(-1).eq(1).all()
    assert chi_square(pack(rare), torch.tensor([0.0, 1, 1, 0, 1, 0, 0, 0])) > 1e-3


@pytest.mark.parametrize(
    ("text", "meant"), [("a+b", ["a+b"]), ("a+b+c", ["a+b", "c"]), ("c+a+b", ["a+b", "c"]), ("a\\+b+c", ["a+b", "c"]), ("c", ["c"])]
)
def test_a_plus_inside_a_name_needs_no_escape_where_it_can_be_told(text, meant):
    assert parse(text, ["a+b", "c"]) == meant
