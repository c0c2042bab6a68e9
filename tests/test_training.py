"""Training: what a run leaves behind, and that stopping it never matters."""

import json
import math
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from codevae import CMVAE, Batch, CoDEVAE, Modality, MultimodalVAE, fit, load, resume
from codevae.errors import Diverged, InputError, Interrupted
from codevae.likelihoods import Normal
from codevae.training import History, Run
from codevae.training.run import load_tensors


def toy(points: int = 60) -> Batch:
    """Two correlated tables, with missing modalities."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(points, 2, generator=generator)
    a = z @ torch.randn(2, 4, generator=generator) + 0.1 * torch.randn(points, 4, generator=generator)
    b = z @ torch.randn(2, 3, generator=generator) + 0.1 * torch.randn(points, 3, generator=generator)
    observed = torch.rand(points, 2, generator=generator) > 0.2
    observed[:, 0] |= ~observed.any(1)
    return Batch({"a": a, "b": b}, observed=observed)


def model(seed: int = 0, **method) -> MultimodalVAE:
    return MultimodalVAE([Modality("a", (4,)), Modality("b", (3,))], latent_dim=2, method=CoDEVAE(**method), seed=seed)


def same_bits(one: Path, other: Path, *files: str) -> None:
    for file in files:
        left, right = load_tensors(one / file), load_tensors(other / file)
        assert left.keys() == right.keys()
        for name in left:
            assert torch.equal(left[name], right[name]), f"{file}: {name}"


def test_training_improves_the_bound_and_keeps_the_best_weights(tmp_path):
    trained = model()
    history = fit(trained, toy(), steps=200, interval=20, out=tmp_path / "run", progress=False)
    assert history["bound"][-1] > history["bound"][0] + 0.5
    assert history["step"] == list(range(20, 201, 20))
    best = history["step"][max(range(10), key=lambda row: history["validation"][row])]
    loaded = load(tmp_path / "run")
    for name, tensor in loaded.state_dict().items():
        assert torch.equal(tensor, trained.state_dict()[name]), name
    last = load_tensors(tmp_path / "run" / "weights.safetensors")
    assert all(torch.equal(last[name], loaded.state_dict()[name]) for name in last) == (best == 200)


def test_the_same_seed_gives_the_same_bits_and_leaves_the_callers_generator(tmp_path):
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    for name in ("one", "two"):
        fit(model(), toy(), steps=30, out=tmp_path / name, progress=False)
    assert torch.equal(before, torch.random.get_rng_state())
    same_bits(tmp_path / "one", tmp_path / "two", "weights.safetensors", "best.safetensors")
    fit(model(), toy(), steps=30, seed=1, out=tmp_path / "three", progress=False)
    one, three = (load_tensors(tmp_path / name / "weights.safetensors") for name in ("one", "three"))
    assert any(not torch.equal(one[name], three[name]) for name in one)


def test_the_run_folder_is_plain_files(tmp_path):
    fit(model(), toy(), steps=10, out=tmp_path / "run", progress=False, about={"note": "mine"})
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert config["data"]["note"] == "mine" and config["training"]["steps"] == 10
    assert config["model"]["arguments"]["method"]["arguments"]["subsets"] == "all"
    settings = config["model"]["arguments"]["method"]["arguments"]
    assert settings.pop("omega") == "auto"  # a rule that is followed throughout, not a choice made once
    assert "auto" not in json.dumps(config["model"])
    assert History.read(tmp_path / "run" / "history.csv").rows == Run(tmp_path / "run").history.rows
    assert {file.name for file in (tmp_path / "run").iterdir()} == {
        "config.yaml",
        "weights.safetensors",
        "best.safetensors",
        "state.safetensors",
        "history.csv",
    }


@pytest.mark.parametrize("method", [{}, {"subsets": 2, "omega": "auto", "rho": "learned_matrix"}], ids=["all", "drawn"])
def test_resuming_gives_the_same_bits(tmp_path, monkeypatch, method):
    fit(model(**method), toy(), steps=50, interval=7, out=tmp_path / "whole", progress=False)
    from codevae.training.loop import Training

    original = Training._update

    def stopping(self, batch, guard):
        if self.step == 24:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(self, batch, guard)

    monkeypatch.setattr(Training, "_update", stopping)
    with pytest.raises(Interrupted, match="step 25 of 50"):
        fit(model(**method), toy(), steps=50, interval=7, out=tmp_path / "halved", progress=False)
    monkeypatch.undo()
    resumed, history = resume(tmp_path / "halved", toy(), progress=False)
    same_bits(tmp_path / "whole", tmp_path / "halved", "weights.safetensors", "best.safetensors", "state.safetensors")
    assert history.rows == Run(tmp_path / "whole").history.rows
    assert torch.equal(resumed.embed(toy()), load(tmp_path / "whole").embed(toy()))


KILLER = """
import os, random, signal, sys, time
sys.path.insert(0, {tests!r})
from test_training import model, toy
from codevae import fit, resume
from codevae.training import Run

def child(target):
    # A process of its own, forked before any tensor was computed: it starts at once.
    pid = os.fork()
    if pid:
        return pid
    if Run(target).exists:
        resume(target, toy(), progress=False, save_every=0.0)
    else:
        fit(model(), toy(), steps=200, interval=5, out=target, save_every=0.0, progress=False)
    os._exit(0)

def finished(pid):
    assert os.waitpid(pid, 0)[1] == 0

start = time.monotonic()
finished(child(sys.argv[1] + "/whole"))
duration = time.monotonic() - start
moments, kills, number = random.Random(0), 0, 0
while kills < 25:
    target, number = sys.argv[1] + "/killed" + str(number), number + 1
    pid = child(target)
    time.sleep(moments.uniform(0.02, 0.98) * duration)
    os.kill(pid, signal.SIGKILL)
    kills += os.WIFSIGNALED(os.waitpid(pid, 0)[1])  # not if it was done before
    if Run(target).exists:
        Run(target).config, Run(target).history
    finished(child(target))
"""


@pytest.mark.slow
def test_killed_at_a_random_moment_and_resumed_the_bits_are_the_same(tmp_path):
    """Twenty-five trainings, each killed with SIGKILL at a random moment, then resumed."""
    script = tmp_path / "script.py"
    script.write_text(KILLER.format(tests=str(Path(__file__).parent)))
    told = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert told.returncode == 0, told.stderr
    runs = sorted(tmp_path.glob("killed*"))
    assert len(runs) >= 25
    for killed in runs:
        same_bits(tmp_path / "whole", killed, "weights.safetensors", "best.safetensors", "state.safetensors")
        assert Run(killed).history.rows == Run(tmp_path / "whole").history.rows


def test_another_batch_of_data_is_refused_at_resume(tmp_path):
    fit(model(), toy(), steps=5, out=tmp_path / "run", progress=False)
    with pytest.raises(InputError, match="not those that the run was started with"):
        resume(tmp_path / "run", toy(59), progress=False)


def test_a_finished_run_resumes_to_itself(tmp_path):
    fit(model(), toy(), steps=5, out=tmp_path / "run", progress=False)
    before = load_tensors(tmp_path / "run" / "weights.safetensors")
    resume(tmp_path / "run", toy(), progress=False)
    after = load_tensors(tmp_path / "run" / "weights.safetensors")
    assert all(torch.equal(before[name], after[name]) for name in before)


class Breaks(torch.nn.Module):
    """A decoder that is fine twenty times, then gives NaN."""

    def __init__(self):
        super().__init__()
        self.inner, self.calls = torch.nn.Linear(2, 3), 0

    def forward(self, z):
        self.calls += self.training
        return self.inner(z) / (0.0 if self.calls > 20 else 1.0)


def test_a_nan_stops_training_and_is_named(tmp_path):
    data = toy()
    broken = MultimodalVAE([Modality("a", (4,)), Modality("b", (3,), Normal(), decoder=Breaks())], latent_dim=2, seed=0)
    with pytest.raises(Diverged, match=r"step 21: log p\(x\|z\) of 'b', from the subset '[ab+]+', is not finite"):
        fit(broken, data, steps=50, interval=5, out=tmp_path / "run", progress=False)
    kept = load(tmp_path / "run", modules={"b": (None, Breaks())})
    assert all(bool(tensor.isfinite().all()) for tensor in kept.state_dict().values())
    assert all(bool(parameter.isfinite().all()) for parameter in broken.parameters())


def test_what_stands_in_absent_entries_changes_no_parameter(tmp_path):
    data = toy()
    for name, garbage in (("nan", math.nan), ("inf", math.inf), ("large", 1e30)):
        values = {key: value.masked_fill(~data.entries[key], garbage) for key, value in data.values.items()}
        fit(model(), Batch(values, observed=data.observed, entries=data.entries), steps=30, out=tmp_path / name, progress=False)
    same_bits(tmp_path / "nan", tmp_path / "inf", "weights.safetensors", "best.safetensors")
    same_bits(tmp_path / "nan", tmp_path / "large", "weights.safetensors", "best.safetensors")


@pytest.mark.parametrize(("points", "size"), [(1, 256), (9, 4), (5, 1), (257, 256)])
def test_any_number_of_points_and_any_last_batch(points, size):
    history = fit(model(), toy(points), steps=6, batch_size=size, validation=0.0, progress=False)
    assert all(math.isfinite(value) for value in history["bound"])


def test_a_padded_batch_has_the_gradient_of_the_short_one(monkeypatch):
    data, vae = toy(5), model().eval()
    monkeypatch.setattr("codevae.random.normal", lambda shape, like, axis=None: torch.zeros(shape))
    gradients = []
    for batch in (data, data.padded(8)):
        vae.zero_grad()
        vae(batch).loss().backward()
        gradients.append([parameter.grad.clone() for parameter in vae.parameters() if parameter.grad is not None])
    for short, padded in zip(*gradients, strict=True):
        torch.testing.assert_close(short, padded, rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore::codevae.methods.codevae.NegativeWeights")  # steps this large lead anywhere
def test_early_stopping():
    history = fit(model(), toy(), steps=5000, interval=1, patience=3, learning_rate=0.5, progress=False)
    assert len(history) < 5000
    best = max(range(len(history)), key=lambda row: history["validation"][row])
    assert len(history) - 1 - best == 3


def test_a_validation_batch_of_its_own(tmp_path):
    data = toy()
    fit(model(), data[:40], validation=data[40:], steps=10, out=tmp_path / "run", progress=False)
    with pytest.raises(InputError, match="validation=…"):
        resume(tmp_path / "run", data[:40], progress=False)
    resume(tmp_path / "run", data[:40], validation=data[40:], progress=False)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": 5, "epochs": 1}, "not both"),
        ({"steps": 0}, r"fit\(steps\)"),
        ({"steps": 5, "batch_size": 0}, r"fit\(batch_size\)"),
        ({"steps": 5, "learning_rate": -1.0}, r"fit\(learning_rate\)"),
        ({"steps": 5, "schedule": "linear"}, "'cosine' or 'constant'"),
        ({"steps": 5, "validation": 1.5}, r"fit\(validation\)"),
        ({"steps": 5, "patience": 0}, r"fit\(patience\)"),
        ({"steps": 5, "clip": 0.0}, r"fit\(clip\)"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        fit(model(), toy(), progress=False, **wrong)


def test_a_run_is_not_overwritten_unasked(tmp_path):
    fit(model(), toy(), steps=5, out=tmp_path / "run", progress=False)
    with pytest.raises(InputError, match="overwrite=True"):
        fit(model(), toy(), steps=5, out=tmp_path / "run", progress=False)
    fit(model(), toy(), steps=6, out=tmp_path / "run", overwrite=True, progress=False)
    assert Run(tmp_path / "run").config["training"]["steps"] == 6


def test_broken_run_folders_are_named(tmp_path):
    with pytest.raises(InputError, match="no such run folder"):
        load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"config\.yaml is missing"):
        load(tmp_path / "empty")
    run = tmp_path / "run"
    fit(model(), toy(), steps=5, out=run, progress=False)
    weights = (run / "best.safetensors").read_bytes()
    (run / "best.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(InputError, match=r"best\.safetensors: damaged"):
        load(run)
    for file in ("best", "weights", "state"):
        (run / f"{file}.safetensors").unlink()
    with pytest.raises(InputError, match="no weights"):
        load(run)
    text = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(text.replace("format: 1", "format: 99"))
    with pytest.raises(InputError, match="upgrade codevae"):
        load(run)
    (run / "config.yaml").write_text("format: [1")
    with pytest.raises(InputError, match="damaged"):
        load(run)


def test_a_full_disk_leaves_what_was_there(tmp_path):
    run = tmp_path / "run"
    fit(model(), toy(), steps=5, out=run, progress=False)
    before = (run / "weights.safetensors").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # no file may grow larger: what a full disk does, without filling one
    try:
        with pytest.raises(InputError, match=r"cannot write .*weights\.safetensors"):
            Run(run).save_weights(model(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (run / "weights.safetensors").read_bytes() == before
    assert not [file for file in run.iterdir() if file.name.startswith(".")]


@pytest.mark.filterwarnings("ignore")
def test_mixed_precision_trains_close_to_the_plain_one():
    plain, mixed = model(), model()
    one = fit(plain, toy(), steps=60, interval=60, progress=False)
    other = fit(mixed, toy(), steps=60, interval=60, precision="bf16-mixed", progress=False)
    assert one["bound"][-1] == pytest.approx(other["bound"][-1], rel=0.05)


PROCESSES = """
import sys, torch
torch.set_num_threads(1)
sys.path.insert(0, {tests!r})
from test_training import model, toy
from codevae import fit
if __name__ == "__main__":
    devices = int(sys.argv[2])
    fit(model(), toy(64), steps=20, interval=1, batch_size=24, devices=devices, accelerator="cpu", progress=False, out=sys.argv[1])
"""


@pytest.mark.slow
def test_two_processes_are_one(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PROCESSES.format(tests=str(Path(__file__).parent)))
    for devices in (1, 2):
        subprocess.run([sys.executable, script, tmp_path / str(devices), str(devices)], check=True, timeout=300, capture_output=True)
    one, two = (Run(tmp_path / str(devices)).history for devices in (1, 2))
    for column in ("bound", "validation"):
        assert one[column] == pytest.approx(two[column], rel=3e-5)  # the entropy of π, times ω = 1000, is rounded in single precision


@pytest.mark.parametrize("validation", [0.0, 0.2])
def test_what_is_settled_after_training_is_saved(tmp_path, validation):
    parts = [Modality("a", (4,), private_dim=2), Modality("b", (3,), private_dim=2)]
    made = MultimodalVAE(parts, 2, CMVAE(clusters=6), seed=0)
    fit(made, toy(), steps=20, validation=validation, out=tmp_path / "run", progress=False)
    assert int(made.method.prior.alive.sum()) < 6  # pruned, with so little training
    assert torch.equal(load(tmp_path / "run").method.prior.alive, made.method.prior.alive)


def test_a_run_without_validation_that_was_stopped_can_be_loaded(tmp_path):
    fit(model(), toy(), steps=10, validation=0.0, out=tmp_path / "run", progress=False)
    (tmp_path / "run" / "weights.safetensors").unlink()  # what SIGTERM leaves: the state alone
    state = load_tensors(tmp_path / "run" / "state.safetensors")
    loaded = load(tmp_path / "run").state_dict()
    assert all(torch.equal(tensor, state[f"model/{name}"]) for name, tensor in loaded.items())
