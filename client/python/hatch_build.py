"""Generates quire_client/v1 from the project's protos whenever a wheel is built, so that the two cannot differ."""
from pathlib import Path
from typing import Any

from grpc_tools import protoc
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Generated code imports its neighbours by this name: nothing of it stands beside the package.
MODULE = "quire_client/v1"
# Of the repository, or of a source distribution, which holds a copy.
PROTO_FOLDERS = ("../../proto/quire/v1", "proto/quire/v1")


class StubsHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        folder = next((root / name for name in PROTO_FOLDERS if (root / name).is_dir()), None)
        if folder is None:
            raise FileNotFoundError(f"no protos: expected one of {', '.join(PROTO_FOLDERS)} in {root}")
        for stale in (root / "src" / MODULE).glob("*_pb2*"):
            stale.unlink()
        outputs = [f"--{kind}_out={root / 'src'}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")]
        protos = sorted(str(path) for path in folder.glob("*.proto"))
        if protoc.main(["protoc", f"-I{MODULE}={folder}", *outputs, *protos]) != 0:
            raise RuntimeError("protoc could not generate the stubs")
