"""Real outputs of real models go through the commands with no option but the path; scripts/try_files.py tries all."""

import json
from pathlib import Path

import pytest

from calibrant.cli.main import main

NAMES = (
    "cifar100_densenet_bc",
    "cifar100_resnet50",
    "cifar10_extreme_logits",
    "cifar10_overconfident",
    "cifar10_resnet110",
    "cifar10_vgg16",
    "cifar10_wideresnet",
    "fashion_cnn",
    "imagenet_1000images",
    "imdb",
    "newsgroups20",
    "soccer_forecasts",
    "tinyimagenet_probe",
    "top1_guo_models",
)
# Every other file was found miscalibrated by those who published it.
CALIBRATED = {"soccer_forecasts"}


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_measured(name: str, shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", str(shared_data / f"{name}.npz"), "--json"]) == 0
    for part in json.loads(capsys.readouterr().out)["parts"].values():
        assert part["verdict"].startswith("Miscalibrated") == (name not in CALIBRATED)


@pytest.mark.parametrize("name", ["cifar10_resnet110", "top1_guo_models"])
def test_a_file_becomes_a_page(name: str, shared_data: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    assert main(["report", str(shared_data / f"{name}.npz"), "-o", str(page), "-q"]) == 0
    assert 30_000 < page.stat().st_size < 300_000
