"""What every test may ask for: its own seed, double precision, and noise whose averages are exact."""

import hypothesis
import pytest
import scipy.linalg
import torch

from codevae import random

# The same examples every time, and no deadline: how busy the machine is says nothing about the code.
hypothesis.settings.register_profile("codevae", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("codevae")


@pytest.fixture(autouse=True)
def seed():
    """Each test draws the same numbers whether it runs alone or after others."""
    torch.manual_seed(0)


@pytest.fixture
def double():
    """Everything made inside the test is float64."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def exact_noise(monkeypatch):
    """Normal noise becomes S points of mean 0 and covariance I, so that an average over S of anything quadratic is its expectation.

    The points are the rows of a Hadamard matrix without its constant column. A column is used for one dimension of one draw, so
    different draws (shared and private latents) are uncorrelated as long as S is a power of two above their total width.
    """
    used = 0

    def points(shape, like, batch_axis=None):
        nonlocal used
        samples, width = shape[0], shape[-1]
        columns = [1 + (used + column) % (samples - 1) for column in range(width)]
        used += width
        rows = torch.as_tensor(scipy.linalg.hadamard(samples), dtype=like.dtype)[:, columns]
        return rows.reshape(samples, *(1,) * (len(shape) - 2), width).expand(shape)

    monkeypatch.setattr(random, "normal", points)


@pytest.fixture
def no_noise(monkeypatch):
    """Normal noise becomes 0: every draw of a normal is its mean."""
    monkeypatch.setattr(random, "normal", lambda shape, like, batch_axis=None: like.new_zeros(shape))
