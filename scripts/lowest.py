"""Print the lowest versions that pyproject.toml declares, as constraints for pip."""

from pathlib import Path

import tomllib

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
wanted = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
for line in sorted(set(wanted)):
    name, _, version = line.partition(">=")
    print(f"{name}=={version}")
