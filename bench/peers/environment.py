"""Where the peers live: a virtual environment with pinned packages, a native build of llama.cpp, synthetic models."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PINS = ("xllamacpp==2026.10.11549", "openvino-genai==2026.4.1.0", "gguf==0.19.0", "numpy==2.4.6")
LLAMA_CPP_SOURCE = "llama-cpp-python==0.3.36"  # its vendor/llama.cpp is built by --native-peer
NATIVE_TARGETS = ("llama-batched-bench", "llama-server")


class Unavailable(Exception):
    """Something to compare with is missing or does not work; one sentence."""


def say(text):
    print(f"compare_peers: {text}", file=sys.stderr, flush=True)


def directory():
    return Path(os.environ.get("QUIRE_PEERS_DIR", Path.home() / ".cache/quire/peers"))


def python():
    return directory() / "bin/python"


def _run(command, what, **options):
    """What it printed, without what it said on its way on the error output."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        last_line = ((done.stdout + done.stderr).strip().splitlines() or ["no output"])[-1]
        raise Unavailable(f"{what} failed: {last_line}")
    return done.stdout


def install():
    """The virtual environment, made and filled when it lacks a pinned package."""
    if not python().exists():
        say(f"making a virtual environment in {directory()}")
        venv.create(directory(), with_pip=True)
    installed = _run([python(), "-m", "pip", "list", "--format=freeze"], "listing the installed packages").split()
    missing = [pin for pin in PINS if pin not in installed]
    if missing:
        say("installing " + " ".join(missing))
        _run([python(), "-m", "pip", "install", "--quiet", *missing], "installing the peers")


def native(name):
    """A program of the native build; None if there is none."""
    program = directory() / "native/bin" / name
    return program if program.exists() else None


def build_native():
    """llama.cpp for exactly this processor, about 25 minutes on one core, once."""
    if all(native(name) for name in NATIVE_TARGETS):
        return
    sources = directory() / "src"
    sources.mkdir(parents=True, exist_ok=True)
    name = LLAMA_CPP_SOURCE.replace("==", "-").replace("-cpp-python", "_cpp_python")
    archive = sources / f"{name}.tar.gz"
    if not archive.exists():
        say(f"fetching the sources of {LLAMA_CPP_SOURCE}")
        _run([python(), "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "llama-cpp-python",
              LLAMA_CPP_SOURCE], "fetching llama.cpp's sources", cwd=sources)
    if not (sources / name).exists():
        with tarfile.open(archive) as tar:
            tar.extractall(sources, filter="data")
    say("building llama.cpp natively, about 25 minutes on one core")
    build = directory() / "native"
    # g++ 12 drops the stores that fill the tile configuration before ldtilecfg, and the program crashes where AMX is.
    compilers = [f"-DCMAKE_{language}_COMPILER={name}" for language, name in (("C", "gcc-14"), ("CXX", "g++-14"))
                 if shutil.which(name)]
    _run(["cmake", "-S", sources / name / "vendor/llama.cpp", "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
          "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF",
          "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_UI=OFF", *compilers], "configuring llama.cpp")
    _run(["nice", "cmake", "--build", build, "--target", *NATIVE_TARGETS], "building llama.cpp")


def model_path(name):
    """What --model names: a file, or the synthetic model of a type, made when it is not there yet."""
    if name not in ("synthetic-q4_0", "synthetic-q8_0"):
        if not Path(name).is_file():
            raise Unavailable(f"--model: no file {name}")
        return Path(name)
    quantization = name.removeprefix("synthetic-")
    path = directory() / "models" / f"synthetic-1b.{quantization}.gguf"
    if not path.exists():
        say(f"writing {path}")
        tokenizer = _run([ROOT / "scripts/fetch_model"], "fetching the model whose vocabulary is taken").strip()
        _run([python(), ROOT / "bench/make_model", "--tokenizer", tokenizer, "--type", quantization, "--output", path],
             "writing the synthetic model")
    return path
