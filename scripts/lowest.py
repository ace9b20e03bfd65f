"""Print the lowest versions that pyproject.toml declares, as constraints for pip."""

from pathlib import Path

import tomllib

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
wanted = [*project["dependencies"], *extras["cli"], *extras["parquet"], *extras["onnx"]]
wanted += [line for line in extras["dev"] if line.startswith(("duckdb", "onnxruntime", "pandas"))]
for line in sorted(set(wanted)):
    name, _, version = line.partition(">=")
    print(f"{name}=={version}")
