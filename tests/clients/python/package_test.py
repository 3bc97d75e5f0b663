"""What is installed."""
import inspect
import re
from importlib import metadata, resources
from pathlib import Path

from quire_client import AsyncClient, Client

ROOT = Path(__file__).parents[3]


def test_the_version_is_the_projects() -> None:
    project = re.search(r"project\(quire VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert project and metadata.version("quire-client") == project[1]


def test_types_are_installed() -> None:
    package = resources.files("quire_client")
    assert (package / "py.typed").is_file() and (package / "v1" / "generation_pb2.pyi").is_file()


def test_nothing_else_is_installed_beside_the_package() -> None:
    files = metadata.files("quire-client") or []
    assert {path.parts[0].split("-")[0] for path in files} == {"quire_client"}


def test_both_clients_have_the_same_methods() -> None:
    def methods(client: type) -> dict[str, list[str]]:
        functions = inspect.getmembers(client, inspect.isfunction)
        return {name: list(inspect.signature(each).parameters) for name, each in functions if not name.startswith("_")}

    assert methods(Client) == methods(AsyncClient)
    assert len(methods(Client)) == 10
