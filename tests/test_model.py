"""What one asks a model: any subset in, any modality out, the same answer however it is asked."""

import functools
import json

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from codevae import random
from codevae.batch import Batch
from codevae.distributions import Latent, Normal
from codevae.errors import InputError
from codevae.likelihoods import Bernoulli, Categorical, Columns, Laplace, NegativeBinomial
from codevae.likelihoods import Normal as Numbers
from codevae.methods import VAE, CoDEVAE
from codevae.modality import Modality
from codevae.model import MultimodalVAE
from codevae.networks import TableEncoder
from codevae.record import describe, rebuild
from worlds import model, patterns, with_prior_expert, world

N = 11


class Foreign(nn.Linear):
    """Somebody's own network."""


def everything(method=None, seed=0):
    """A model of numbers, bytes, tokens, counts and a mixed table, some with private latents."""
    parts = [
        Modality("numbers", (3,), private_dim=2),
        Modality("image", (1, 4, 4), Laplace(0.75, standardise=False), sees_gaps=True),
        Modality("tokens", (5,), Categorical(4), private_dim=1),
        Modality("counts", (2,), NegativeBinomial()),
        Modality("mixed", (3,), Columns([(Numbers(), [0]), (Categorical(3), [2]), (Bernoulli(), [1])]), sees_gaps=True),
    ]
    made = MultimodalVAE(parts, 4, method, seed=seed)
    made.calibrate(data())
    return made


def data(count=N):
    """Data points with gaps of every kind."""
    generator = torch.Generator().manual_seed(1)

    def uniform(*shape):
        return torch.rand(count, *shape, generator=generator)

    mixed = torch.cat([uniform(1) * 3, (uniform(1) < 0.5).float(), (uniform(1) * 3).floor()], 1)
    values = {
        "numbers": uniform(3) * 5 + 10,
        "image": (uniform(1, 4, 4) * 256).to(torch.uint8),
        "tokens": (uniform(5) * 4).long(),
        "counts": (uniform(2) * 6).floor(),
        "mixed": mixed,
    }
    entries = {name: uniform(*value.shape[1:]) < 0.8 for name, value in values.items()}
    observed = uniform(5) < 0.7
    observed[2], observed[3] = False, True
    return Batch(values, entries, observed, labels={"class": list("abcdefghijk")[:count]}, ids=[f"p{n}" for n in range(count)])


@pytest.fixture(scope="module")
def made():
    torch.manual_seed(0)
    return everything()


def answers(made, batch, **settings):
    """Everything that is deterministic, in one list of tensors."""
    given = [None, ["numbers", "tokens"], "image", []]
    codes = [made.embed(batch, given=names, **settings) for names in given]
    translated = [made.translate(batch, to=name, **settings) for name in made.names]
    return [*codes, *translated, *made.impute(batch, **settings).values.values()]


# ------------------------------------------------------------------------------------------------ shapes and types


def test_shapes_and_types(made):
    batch = data()
    assert made.embed(batch).shape == (N, 4)
    assert made.embed(batch, given=["image"], samples=3).shape == (3, N, 4)
    q = made.infer(batch, given=["numbers", "image"])
    assert q.shared.loc.shape == (1, N, 4)
    assert {name: tuple(private.loc.shape) for name, private in q.private.items()} == {"numbers": (1, N, 2), "tokens": (1, N, 1)}
    for name, value in batch.values.items():
        assert made.translate(batch, to=name).shape == value.shape
        assert made.translate(batch, given="counts", to=name, samples=3).shape == (3, *value.shape)
        assert made.impute(batch).values[name].dtype == value.dtype
    assert made.translate(batch, to="tokens").dtype == torch.int64
    latent = q.draw(2)
    decoded = made.decode(latent, ["tokens", "counts"], kind="mean")
    assert {name: tuple(value.shape) for name, value in decoded.items()} == {"tokens": (2, 1, N, 5, 4), "counts": (2, 1, N, 2)}
    assert list(made.decode(latent)) == made.names
    new = made.generate(7)
    assert {name: tuple(value.shape) for name, value in new.values.items()} == {
        name: (7, *part.shape) for name, part in made.modalities.items()
    }
    assert new.observed.all()
    assert not any(tensor.requires_grad for tensor in (made.embed(batch), made.translate(batch, to="counts"), *new.values.values()))


@pytest.mark.parametrize("chunk", [1, 2, 1000])
def test_answers_do_not_depend_on_the_chunk(made, chunk):
    for ours, theirs in zip(answers(made, data(), chunk=chunk), answers(made, data()), strict=True):
        assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert made.embed(data(), samples=2, chunk=chunk).shape == (2, N, 4)
    assert made.generate(5, chunk=chunk).values["tokens"].shape == (5, 5)


def test_one_data_point(made):
    for alone, whole in zip(answers(made, data()[4]), answers(made, data()), strict=True):
        assert_close(alone, whole[4:5], rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------------------------------------------ what they are, in an exact world


def test_the_exact_world(double):
    truth = world()
    made = model(truth, with_prior_expert(CoDEVAE(rho=0.0)), prior_share=0.0)
    batch = truth.draw(20)
    observed = torch.rand(20, 3) < 0.6
    observed[:, 1] |= ~observed.any(1)
    part = patterns(batch, observed)
    means, covariances = truth.posterior(part)
    assert_close(made.embed(part), means)
    draws = made.embed(part, samples=20_000)
    assert_close(draws.var(0), covariances.diagonal(dim1=1, dim2=2), rtol=0.06, atol=0)
    prediction = means @ truth.shared["a"].T + truth.offset["a"]
    assert_close(made.translate(part.hide(torch.tensor([1, 0, 0]).bool().expand(20, 3)), to="a"), truth_given(truth, part, "a"))
    filled = made.impute(part)
    assert torch.equal(filled.values["a"], torch.where(observed[:, :1], batch.values["a"], filled.values["a"]))
    assert_close(filled.values["a"][~observed[:, 0]], prediction[~observed[:, 0]])
    assert_close(made.impute(part, samples=20_000).values["a"], filled.values["a"], rtol=0, atol=0.05)
    # draws of x given the others spread as they should: W Cov Wᵀ + σ²
    spread = made.translate(part, given=["b"], to="a", samples=20_000).var(0)
    only = part.given(["b"])
    expected = (truth.shared["a"] @ truth.posterior(only)[1] @ truth.shared["a"].T).diagonal(dim1=1, dim2=2) + truth.sigma["a"] ** 2
    assert_close(spread, expected, rtol=0.06, atol=0)
    generated = made.generate(40_000, draw=True, chunk=10_000).values["c"]
    covariance = truth.shared["c"] @ truth.shared["c"].T + truth.sigma["c"] ** 2 * torch.eye(4)
    assert_close(generated.T.cov(), covariance, rtol=0, atol=0.06)
    assert_close(generated.mean(0), truth.offset["c"], rtol=0, atol=0.05)


def truth_given(truth, batch, name):
    """E[x_name | the others], exactly."""
    others = batch.given([other for other in truth.names if other != name])
    return truth.posterior(others)[0] @ truth.shared[name].T + truth.offset[name]


def test_private_latents_of_a_modality_that_is_not_given_come_from_the_prior(double):
    truth = world(sizes=(2, 2), latent_dim=1, private=(1, 2))
    made, batch = model(truth, CoDEVAE(), jitter=0.1), truth.draw(5)
    q, experts = made.infer(batch, given=["a"]), made.encode(batch)
    assert torch.equal(q.private["a"].loc[0], experts.private["a"].loc)
    assert not q.private["b"].loc.any()
    assert (q.private["b"].scale == 1).all()
    draws = made.generate(40_000, draw=True, chunk=40_000).values["b"]
    covariance = truth.shared["b"] @ truth.shared["b"].T + truth.private["b"] @ truth.private["b"].T + truth.sigma["b"] ** 2 * torch.eye(2)
    assert_close(draws.T.cov(), covariance, rtol=0.06, atol=0.06)


def test_what_an_encoder_says_is_read_as_documented():
    """The locations of the shared latents, then of the private ones; then the log-scales in the same order, held between −7 and 2."""
    made = MultimodalVAE([Modality("x", (10,), Numbers(standardise=False), encoder=nn.Identity(), private_dim=2), Modality("y", (2,))], 3)
    raw = torch.tensor([[1.0, 2, 3, 4, 5, -0.1, -20, 1e8, 0.4, 0.5]], requires_grad=True)
    experts = made.encode(Batch({"x": raw, "y": torch.zeros(1, 2)}))
    assert experts.shared.loc[0].tolist() == [[1, 2, 3]]
    assert_close(experts.shared.scale[0].log(), torch.tensor([[-0.1, -7, 2]]))
    assert experts.private["x"].loc.tolist() == [[4, 5]]
    assert_close(experts.private["x"].scale.log(), torch.tensor([[0.4, 0.5]]))
    assert "y" not in experts.private
    experts.shared.scale[0].log().sum().backward()
    assert_close(raw.grad, torch.tensor([[0.0] * 5 + [1.0] * 3 + [0.0] * 2]))  # also for those that are held


def test_a_sampler_takes_the_priors_place(made):
    class Sampler:
        def draw(self, count):
            return torch.full((count, 4), 0.5)

    new = made.generate(3, sampler=Sampler())
    same = made.decode(Latent(torch.full((1, 1, 3, 4), 0.5), {"numbers": torch.zeros(1, 1, 3, 2), "tokens": torch.zeros(1, 1, 3, 1)}))
    assert_close(new.values["counts"], same["counts"][0, 0].detach())


# ------------------------------------------------------------------------------------------------ given, and gaps


def test_given_is_what_is_left_when_the_others_are_hidden(made):
    batch = data()
    for names in (["numbers"], ["tokens", "image"], []):
        assert_close(made.embed(batch, given=names), made.embed(batch.given(names)))
        assert_close(made.translate(batch, given=names, to="mixed"), made.translate(batch.given(names), given=made.names, to="mixed"))
    assert_close(made.embed(batch, given=made.names), made.embed(batch))
    assert not made.embed(batch, given=[]).any()
    assert not made.embed(batch)[2].any()  # nothing observed: the prior's mean


def test_translate_does_not_look_at_its_target(made):
    batch = data()
    other = Batch({**batch.values, "numbers": batch.values["numbers"] + 5}, batch.entries, labels=batch.labels, ids=batch.ids)
    assert torch.equal(made.translate(batch, to="numbers"), made.translate(other, to="numbers"))
    assert not torch.allclose(made.translate(batch, given="numbers", to="numbers"), made.translate(other, given="numbers", to="numbers"))


def test_a_modality_that_is_absent_altogether(made):
    batch = data()
    less = batch.select(["tokens", "numbers"])  # in another order, too
    hidden = batch.given(["tokens", "numbers"])
    codes_and_translations = 4 + len(made.names)
    for ours, theirs in zip(answers(made, less)[:codes_and_translations], answers(made, hidden)[:codes_and_translations], strict=True):
        assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    filled = made.impute(less)
    for name in ("image", "counts", "mixed"):
        assert_close(filled.values[name], made.translate(less, to=name))
    assert filled.names == made.names
    assert filled.observed.all()
    assert_close(made.embed(less, given=["image"]), torch.zeros(N, 4))


def test_the_order_of_a_batch_does_not_matter(made):
    batch = data()
    for ours, theirs in zip(answers(made, batch.select(batch.names[::-1])), answers(made, batch), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("samples", [None, 4])
def test_impute_keeps_what_is_there_bit_for_bit_and_fills_the_rest(made, samples):
    batch = data()
    filled = made.impute(batch, samples=samples)
    for name, value in batch.values.items():
        there = batch.entries[name].expand(value.shape)
        assert torch.equal(filled.values[name][there], value[there])
        likelihood = made.modalities[name].likelihood
        if not isinstance(likelihood, NegativeBinomial):  # a mean of counts is no count
            assert likelihood.wrong(filled.values[name], torch.ones_like(there)) is None
        assert torch.isfinite(filled.values[name].float()).all()
    assert filled.observed.all()
    assert filled.ids.tolist() == batch.ids.tolist()
    assert filled.labels["class"].tolist() == batch.labels["class"].tolist()
    nans = Batch(
        {name: torch.where(batch.entries[name], value.float(), torch.nan) for name, value in batch.values.items() if name != "tokens"}
    )
    assert not any(value.isnan().any() for value in made.impute(nans).values.values())


class Constant(nn.Module):
    """A decoder that always says the same."""

    def __init__(self, value, *shape):
        super().__init__()
        self.value = nn.Parameter(torch.full(shape, value))

    def forward(self, z):
        return self.value.expand(len(z), *self.value.shape)


@pytest.mark.parametrize(
    ("dtype", "said", "expected"),
    [(torch.uint8, 300.4, 255), (torch.uint8, -7.0, 0), (torch.int64, 2.6, 3), (torch.bool, 0.3, 0), (torch.bool, 0.7, 1)],
)
def test_impute_fills_with_the_nearest_value_that_the_type_holds(dtype, said, expected):
    made = MultimodalVAE([Modality("x", (2,), Numbers(standardise=False), decoder=Constant(said, 2))], 2)
    batch = Batch({"x": torch.ones(1, 2, dtype=dtype)}, entries={"x": [[True, False]]})
    assert made.impute(batch).values["x"].tolist() == [[1, expected]]


def test_impute_from_draws_takes_the_likeliest_category_not_a_mean_of_codes():
    """z decides between codes 0 and 2; their mean would be 1, which never occurs."""
    decoder = nn.Linear(1, 3)
    with torch.no_grad():
        decoder.weight.copy_(torch.tensor([[-30.0], [0.0], [30.0]]))
        decoder.bias.copy_(torch.tensor([1.0, -30.0, 0.0]))
    parts = [Modality("x", (1,), Categorical(3), decoder=nn.Sequential(decoder, nn.Unflatten(-1, (1, 3))))]
    made = MultimodalVAE(parts, 1)
    batch = Batch({"x": torch.zeros(30, 1, dtype=torch.int64)}, entries={"x": torch.zeros(30, 1)})
    assert 1 not in made.impute(batch, samples=25).values["x"]


# ------------------------------------------------------------------------------------------------ randomness and modes


def random_answers(made, batch, **settings):
    return [
        made.embed(batch, samples=2, **settings),
        made.translate(batch, to="tokens", samples=2, **settings),
        made.impute(batch, samples=2, **settings).values["numbers"],
        *made.generate(4, draw=True, **settings).values.values(),
    ]


def test_seeds(made):
    batch = data()
    one, again, other = random_answers(made, batch), random_answers(made, batch, seed=0), random_answers(made, batch, seed=1)
    assert all(map(torch.equal, one, again))
    assert not any(map(torch.equal, one[:3], other[:3]))
    torch.manual_seed(3)
    drawn = random_answers(made, batch, seed=None)
    torch.manual_seed(3)
    assert all(map(torch.equal, drawn, random_answers(made, batch, seed=None)))


def test_the_callers_generators_are_left_as_they_were(made):
    state = torch.get_rng_state()
    random_answers(made, data())
    answers(made, data())
    MultimodalVAE([Modality("x", (2,))], 2, seed=4)
    assert torch.equal(torch.get_rng_state(), state)


def test_first_weights_follow_the_seed():
    one, two, other = (everything(seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)
    assert random._Share.world == 1


def test_modes_are_restored_one_by_one():
    made = everything().train()
    made.modalities["image"].encoder.eval()  # kept as it is, say because it was trained elsewhere
    before = [module.training for module in made.modules()]
    answers(made, data())
    assert [module.training for module in made.modules()] == before
    with pytest.raises(InputError):
        made.embed(Batch({"sound": torch.zeros(2, 1)}))
    assert [module.training for module in made.modules()] == before
    assert torch.is_grad_enabled()


def test_dropout_is_off_when_a_model_is_asked():
    parts = [Modality("x", (3,), encoder=functools.partial(TableEncoder, features=[3], outputs=4, dropout=0.5))]
    made = MultimodalVAE(parts, 2).train()
    batch = Batch({"x": torch.randn(4, 3)})
    assert torch.equal(made.embed(batch), made.embed(batch))
    assert not torch.equal(made.infer(batch).shared.loc, made.infer(batch).shared.loc)  # while in training it is on


# ------------------------------------------------------------------------------------------------ described, rebuilt, loaded


@pytest.mark.parametrize(
    "method",
    [None, CoDEVAE(rho=0.4, subsets=3), CoDEVAE(rho="learned_matrix", omega="auto", subset_weights="by_size")],
    ids=["default", "fixed", "learned"],
)
def test_rebuilt_and_loaded_is_the_same(method):
    made, batch = everything(method).train(), data()
    made(made.prepare(batch)).loss().backward()
    again = rebuild(json.loads(json.dumps(describe(made))))
    again.load_state_dict(made.state_dict())
    for ours, theirs in zip(answers(made, batch), answers(again, batch), strict=True):
        assert torch.equal(ours, theirs)
    torch.manual_seed(0)
    one = made.eval()(made.prepare(batch))
    torch.manual_seed(0)
    two = again.eval()(again.prepare(batch))
    assert torch.equal(one.loss(), two.loss())
    assert describe(again) == json.loads(json.dumps(describe(made)))


def test_own_networks():
    parts = [
        Modality(
            "x",
            (3,),
            encoder=functools.partial(Foreign, in_features=3, out_features=4),
            decoder=functools.partial(Foreign, in_features=2, out_features=3),
        ),
        Modality("y", (2,)),
    ]
    made = MultimodalVAE(parts, 2)
    plain = json.loads(json.dumps(describe(made)))
    with pytest.raises(InputError, match="not part of codevae: .* trust=True"):
        rebuild(plain)
    again = rebuild(plain, trust=True)
    again.load_state_dict(made.state_dict())
    batch = Batch({"x": torch.randn(4, 3), "y": torch.randn(4, 2)})
    assert torch.equal(made.embed(batch), again.embed(batch))
    bare = MultimodalVAE([Modality("x", (3,), encoder=Foreign(3, 4), decoder=Foreign(2, 3))], 2, VAE())
    with pytest.raises(InputError, match="cannot rebuild a bare .*Foreign"):
        rebuild(json.loads(json.dumps(describe(bare))), trust=True)


def test_a_model_keeps_copies():
    likelihood = Numbers()
    part = Modality("x", (3,), likelihood)
    other = Modality("y", (2,), likelihood)  # one likelihood for two modalities: each has its own
    one, two = MultimodalVAE([part, other], 2), MultimodalVAE([part, other], 3)
    assert part.encoder is None
    assert one.modalities["x"].likelihood is not two.modalities["x"].likelihood
    assert one.modalities["y"].likelihood.unit.shape == (2,)


def test_calibrate_takes_any_batch():
    made = everything()
    made.calibrate(data().select(["counts", "numbers"]))
    assert made.modalities["numbers"].likelihood.offset.mean() > 5
    bad = data()
    with pytest.raises(InputError, match=r"'counts': NegativeBinomial does not fit the data: 1 values are not counts .*; choose another"):
        made.calibrate(Batch({"counts": torch.where(torch.arange(2 * N).view(N, 2) == 5, 1.5, bad.values["counts"])}))


def test_in_double_precision(double):
    made = everything()
    batch = data()
    bound = made(made.prepare(batch))
    assert bound.value.dtype == made.embed(batch).dtype == torch.float64
    bound.loss().backward()
    assert isinstance(made.infer(batch).shared, Normal)


# ------------------------------------------------------------------------------------------------ what is said when it is held wrong

PART = Modality("x", (3,))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda made: made.embed(data(), given=["sound"]), "given: 'sound' is not a modality here; the modalities are 'numbers', 'image'"),
        (
            lambda made: made.translate(data(), given="sound", to="image"),
            "given: 'sound' is not a modality of this model, which has 'numbers'",
        ),
        (lambda made: made.translate(data(), to="sound"), "to: 'sound' is not a modality of this model"),
        (lambda made: made.translate(data()), "to: '' is not a modality of this model"),
        (lambda made: made.decode(made.infer(data()).mean, "sound"), "to: 'sound' is not a modality"),
        (
            lambda made: made.decode(made.infer(data()).mean, kind="mode"),
            r"decode\(kind\): expected 'predict', 'mean' or 'draw', got 'mode'",
        ),
        (lambda made: made.embed(Batch({"sound": torch.zeros(2, 3)})), "batch: 'sound' is not a modality of this model"),
        (
            lambda made: made.embed(Batch({"numbers": torch.zeros(2, 4)})),
            r"'numbers' has values of shape \(4,\), the model was made for \(3,\)",
        ),
        (lambda made: made.impute(data()[:0]), "batch: it has no data points"),
        (lambda made: made.generate(0), r"generate\(count\): expected at least 1, got 0"),
        (lambda made: MultimodalVAE([], 2), "expected at least one, each with a name of its own, got none"),
        (lambda made: MultimodalVAE([PART, PART], 2), "each with a name of its own, got 'x', 'x'"),
        (lambda made: MultimodalVAE([PART], 0), r"MultimodalVAE\(latent_dim\): expected a whole number of at least 1, got 0"),
        (
            lambda made: MultimodalVAE([Modality("x", (3,), encoder=nn.Linear(3, 5))], 2).embed(Batch({"x": torch.zeros(2, 3)})),
            r"encoder of 'x': expected \(2, 4\), a location and a log-scale for each of the 2 latent dimensions, got \(2, 5\)",
        ),
        (
            lambda made: MultimodalVAE([Modality("x", (3,), decoder=nn.Linear(2, 5))], 2).translate(
                Batch({"x": torch.zeros(2, 3)}), to="x"
            ),
            r"decoder of 'x': expected \(N, 3\) for Normal, got \(2, 5\)",
        ),
    ],
)
def test_what_is_said_when_it_is_held_wrong(made, ask, message):
    with pytest.raises(InputError, match=message):
        ask(made)
