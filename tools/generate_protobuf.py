"""Generates src/chainkit/protocol/proto/*_pb2.py and *_pb2.pyi from the .proto files beside them.

Run ``python tools/generate_protobuf.py`` after a change to a .proto file and commit the result;
``--check`` changes nothing, names every file that is out of date and exits with 1.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

IMPORT_ROOT = Path(__file__).resolve().parent.parent / "src"
PACKAGE = Path("chainkit/protocol/proto")
GENERATED_PATTERNS = ("*_pb2.py", "*_pb2.pyi")


def strict_stub(text: str) -> str:
    """Return protoc's stub with two changes that ``mypy --strict`` needs.

    A field that is named ``bytes`` shadows the type of that name inside its class, and the mapping
    that may replace a message in a constructor has no type arguments.
    """
    mended = re.sub(r"(?<=[\[ ])bytes(?=[\],]|$)", "_builtins.bytes", text, flags=re.MULTILINE)
    mended = mended.replace("_Mapping]", "_Mapping[str, object]]")
    return f"import builtins as _builtins\n{mended}" if "_builtins." in mended else mended


def generate(root: Path, target: Path) -> None:
    """Write what the .proto files below the import root ``root`` give, below ``target``."""
    sources = sorted((root / PACKAGE).glob("*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={root}"]
    command += [f"--python_out={target}", f"--pyi_out={target}"]
    subprocess.run(command + [str(source) for source in sources], check=True)
    for stub in (target / PACKAGE).glob("*_pb2.pyi"):
        stub.write_text(strict_stub(stub.read_text()))


def generated_files(root: Path) -> dict[str, bytes]:
    """Return the content of each generated file below an import root, by its relative path."""
    paths = (path for pattern in GENERATED_PATTERNS for path in (root / PACKAGE).glob(pattern))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def outdated_files(root: Path) -> list[str]:
    """Return the paths of generated files that differ from what the .proto files give now.

    A file that is missing, or that no .proto file gives any more, counts as different.
    """
    with tempfile.TemporaryDirectory() as folder:
        generate(root, Path(folder))
        expected = generated_files(Path(folder))
    found = generated_files(root)
    return sorted(path for path in expected | found if expected.get(path) != found.get(path))


def main(arguments: Sequence[str] | None = None, root: Path = IMPORT_ROOT) -> int:
    """Generate, or with ``--check`` compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare and change nothing")
    if not parser.parse_args(arguments).check:
        for path in generated_files(root):
            (root / path).unlink()
        generate(root, root)
        return 0
    outdated = outdated_files(root)
    for path in outdated:
        print(f"{path}: differs from its .proto file, run tools/generate_protobuf.py")
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
