"""The command line, as somebody uses it, and twenty ways to hold it wrong."""

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from codevae.cli import main
from codevae.training.run import load_tensors


def write_tables(folder: Path) -> None:
    """Two small tables of 60 samples that miss some of each other's rows, with an empty cell."""
    generator = np.random.default_rng(0)
    z = generator.normal(size=(60, 2))
    ids = [f"s{row}" for row in range(60)]
    rna = pd.DataFrame(z @ generator.normal(size=(2, 4)), columns=[f"g{column}" for column in range(4)])
    rna.insert(0, "sample", ids)
    rna.loc[3, "g2"] = np.nan
    clinic = pd.DataFrame({"sample": ids, "age": generator.normal(50, 9, 60).round(1), "sex": generator.choice(["f", "m"], 60)})
    clinic["site"] = np.where(z[:, 0] > 0, "north", "south")
    rna.drop(index=range(10, 20)).to_csv(folder / "rna.csv", index=False)
    clinic.drop(index=range(40, 45)).to_csv(folder / "clinic.tsv", sep="\t", index=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with two tables and a run trained on them."""
    folder = tmp_path_factory.mktemp("place")
    write_tables(folder)
    before = Path.cwd()
    os.chdir(folder)
    assert (
        main("train rna.csv clinic.tsv --out run --labels site --steps 30 --latent-dim 3 --test 0.2 --rho 0.3 --no-progress".split()) == 0
    )
    yield folder
    os.chdir(before)


@pytest.fixture
def said(place, capsys):
    """Run a command line in that folder: (exit code, what it said, what it complained)."""

    def run(line: str | list[str]):
        capsys.readouterr()
        code = main(line.split() if isinstance(line, str) else line)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_embedding_by_any_modality(said, place):
    assert said("embed run rna.csv clinic.tsv --out z.csv")[0] == 0
    z = pd.read_csv("z.csv", index_col="sample")
    assert list(z.columns) == ["z0", "z1", "z2"] and len(z) == 60
    assert said("embed run rna.csv clinic.tsv --given rna --out rna_only.csv")[0] == 0
    assert said("embed run rna.csv --out without.parquet")[0] == 0
    given, without = pd.read_csv("rna_only.csv", index_col="sample"), pd.read_parquet("without.parquet")
    np.testing.assert_allclose(given.loc[without.index], without, rtol=1e-5)


def test_imputing_keeps_what_is_there(said, place):
    assert said("impute run rna.csv clinic.tsv --out filled --intervals 0.9")[0] == 0
    before, after = pd.read_csv("rna.csv", index_col="sample"), pd.read_csv("filled/rna.csv", index_col="sample")
    assert not after.isna().any().any() and len(after) == 60
    there = before.notna()
    np.testing.assert_array_equal(after.loc[before.index, before.columns].to_numpy()[there], before.to_numpy()[there])
    lower, upper = (pd.read_csv(f"filled/rna.{end}.csv", index_col="sample") for end in ("lower", "upper"))
    hidden = ~after.index.isin(before.index)
    assert (lower[hidden] < upper[hidden]).all().all()
    assert set(pd.read_csv("filled/clinic.csv")["sex"]) == {"f", "m"}


def test_translating_generating_evaluating_info(said, place):
    assert said("translate run rna.csv --to clinic --out clinic2.csv")[0] == 0
    assert list(pd.read_csv("clinic2.csv").columns) == ["sample", "age", "sex"]
    assert said("generate run -n 7 --out samples")[0] == 0
    assert len(pd.read_csv("samples/rna.csv")) == 7
    code, out, _ = said("evaluate run --samples 10 --out numbers.json")
    assert code == 0 and "12 samples that were kept aside" in out and Path("numbers.json").exists()
    code, out, _ = said("info run")
    assert code == 0 and "step 30 of 30 (finished)" in out and "rho 0.3" in out


def test_yaml_says_what_flags_say(said, place):
    Path("run.yaml").write_text(
        "out: from_yaml\nsteps: 5\nlatent_dim: 2\nlabels: site\nmethod:\n  class_path: CoDEVAE\n  init_args:\n    rho: 0.2\n"
    )
    assert said("train --config run.yaml rna.csv clinic.tsv --no-progress")[0] == 0
    assert said("train rna.csv clinic.tsv --out from_flags --steps 5 --latent-dim 2 --labels site --rho 0.2 --no-progress")[0] == 0
    one, other = (load_tensors(Path(name) / "weights.safetensors") for name in ("from_yaml", "from_flags"))
    assert all(bool((one[name] == other[name]).all()) for name in one)


def test_likelihoods_by_name(said, place):
    code, _, _ = said("train rna.csv --out students --likelihood rna=StudentT --private rna=2 --steps 3 --no-progress")
    assert code == 0
    out = said("info students")[1]
    assert "StudentT" in out and "2 private" in out


def test_interrupted_it_exits_with_130_and_resumes(said, place):
    command = [sys.executable, "-c", "import sys; from codevae.cli import main; sys.exit(main())"]
    arguments = "train rna.csv clinic.tsv --out stopped --labels site --steps 20000 --interval 50 --save-every 0 --latent-dim 2".split()
    process = subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not Path("stopped/state.safetensors").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130 and "resume stopped goes on" in complaint
    assert "stopped; codevae resume" in said("info stopped")[1]


WRONG = {
    "no such verb": ("trian rna.csv", "the verbs are"),
    "no tables": ("train --out new", "name the tables"),
    "no out": ("train rna.csv", "out"),
    "unknown option": ("train rna.csv --out new --bogus 3", "there is no option --bogus"),
    "option of the wrong type": ("train rna.csv --out new --latent-dim many", "latent-dim"),
    "no such file": ("train nowhere.csv --out new", "nowhere.csv"),
    "no such kind of file": ("train readme.docx --out new", "csv"),
    "duplicate ids": ("train twice.csv --out new", "s1"),
    "no common ids": ("train rna.csv other.csv --out new", "other.csv"),
    "text in a number column": ("train text.csv --out new", "kind"),
    "an empty column": ("train hollow.csv --out new", "ignore"),
    "two tables of one name": ("train rna.csv sub/rna.csv --out new", "name"),
    "rho out of range": ("train rna.csv clinic.tsv --out new --rho 1.0", "rho"),
    "a matrix that is not positive definite": (
        ["train", "rna.csv", "clinic.tsv", "--out", "new", "--rho", "[[1,2],[2,1]]"],
        "positive definite",
    ),
    "a run that is there": ("train rna.csv --out run", "--overwrite"),
    "likelihood that does not fit": ("train rna.csv --out new --likelihood rna=Poisson --steps 3", "Poisson"),
    "no such likelihood": ("train rna.csv --out new --likelihood rna=Gauss", "Gauss"),
    "likelihood of no modality": ("train rna.csv --out new --likelihood dna=Normal", "dna"),
    "no such method": ("train rna.csv --out new --method GAN", "GAN"),
    "VAE of two": ("train rna.csv clinic.tsv --out new --method VAE", "one modality"),
    "no run": ("embed nowhere rna.csv --out z.csv", "no such run"),
    "half a run": ("embed half rna.csv --out z.csv", "half"),
    "newer config": ("embed newer rna.csv --out z.csv", "upgrade"),
    "damaged weights": ("embed damaged rna.csv --out z.csv", "damaged"),
    "damaged config": ("embed garbled rna.csv --out z.csv", "damaged"),
    "unknown column": ("embed run wide.csv --out z.csv", "extra"),
    "missing column": ("embed run rna=narrow.csv --out z.csv", "g3"),
    "unknown table": ("embed run dna.csv --out z.csv", "dna"),
    "unseen category": ("embed run clinic=strange.tsv --out z.csv", "x"),
    "wrong --to": ("translate run rna.csv --to dna --out d.csv", "dna"),
    "wrong --given": ("embed run rna.csv --given dna --out z.csv", "dna"),
    "unwritable place": ("embed run rna.csv --out rna.csv/z.csv", "cannot write"),
    "an ending that is not known": ("embed run rna.csv --out z.xlsx", "xlsx"),
    "intervals of nothing": ("impute run rna.csv --out f --intervals 1.5", "between 0 and 1"),
    "tables that moved": ("resume run elsewhere.csv", "elsewhere.csv"),
    "picture of words": ("train rna.csv --out new --picture rna=big", "HEIGHTxWIDTH"),
    "out is a file": ("train rna.csv --out rna.csv --steps 3", "is a file"),
    "no such device": ("train rna.csv --out new --steps 3 --accelerator tpu", "accelerator"),
    "nothing left to see": ("train rna.csv --out new --missing 1", "--missing"),
    "a picture of another size": ("train rna.csv --out new --picture rna=3x3", "rna"),
    "nothing to go on": ("embed run rna.csv --given clinic --out z.csv", "clinic"),
    "translating from itself": ("translate run rna.csv --to rna --out z.csv", "clinic"),
    "steps and epochs": ("train rna.csv --out new --steps 3 --epochs 2", "not both"),
}


@pytest.fixture(scope="module")
def wrong_place(place):
    """Everything that can be wrong with files, beside what is right."""
    rna = pd.read_csv("rna.csv")
    Path("readme.docx").write_text("hello")
    pd.concat([rna, rna.iloc[1:2]]).to_csv("twice.csv", index=False)
    rna.assign(sample="t" + rna["sample"]).to_csv("other.csv", index=False)
    rna.assign(g1=rna["g1"].astype(object).where(rna.index != 5, "high")).to_csv("text.csv", index=False)
    rna.assign(g1=np.nan).to_csv("hollow.csv", index=False)
    Path("sub").mkdir()
    rna.to_csv("sub/rna.csv", index=False)
    rna.assign(extra=1.0).to_csv("sub/wide.csv", index=False)
    rna.drop(columns="g3").to_csv("narrow.csv", index=False)
    rna.to_csv("dna.csv", index=False)
    clinic = pd.read_csv("clinic.tsv", sep="\t")
    clinic.assign(sex="x").to_csv("strange.tsv", sep="\t", index=False)
    rna.assign(extra=1.0).to_csv("wide.csv", index=False)
    for name in ("half", "newer", "damaged", "garbled"):
        Path(name).mkdir()
        for file in ("config.yaml", "schema.json", "best.safetensors"):
            Path(name, file).write_bytes(Path("run", file).read_bytes())
    Path("half/best.safetensors").unlink()
    config = Path("run/config.yaml").read_text()
    Path("newer/config.yaml").write_text(config.replace("format: 1", "format: 7", 1))
    Path("damaged/best.safetensors").write_bytes(b"not weights")
    Path("garbled/config.yaml").write_bytes(gzip.compress(config.encode()))
    return place


@pytest.mark.parametrize("name", WRONG)
def test_held_wrong_it_says_so_in_one_line(said, wrong_place, name):
    line, names = WRONG[name]
    if name == "unknown column":
        line = "embed run rna=wide.csv --out z.csv"
    before = snapshot(wrong_place)
    code, out, complaint = said(line)
    assert code == 2, (out, complaint)
    assert complaint.count("\n") == 1 and complaint.startswith("codevae ") and names in complaint, complaint
    assert "Traceback" not in complaint
    assert snapshot(wrong_place) == before


def test_help_is_there_for_every_verb(said, place):
    from codevae.cli import VERBS

    code, out, _ = said("--help")
    assert code == 0 and all(verb in out for verb in VERBS)
    for verb in VERBS:
        with pytest.raises(SystemExit) as left:
            said([verb, "--help"])
        assert left.value.code == 0
