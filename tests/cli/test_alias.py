"""`flambeau alias install|remove|status`, in a virtual environment that holds flambeau and its requirements alone."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib.metadata import distribution
from pathlib import Path

import pytest

import flambeau


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A function that runs Python in the environment."""
    root = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / "venv"], check=True)
    packages = root / "packages"
    packages.mkdir()
    (packages / "flambeau").symlink_to(Path(flambeau.__file__).parent)
    for name in ("numpy", "llvmlite"):
        for file in distribution(name).files:
            if "/" in str(file) and ".." not in str(file):
                top = Path(file).parts[0]
                if not (packages / top).exists():
                    (packages / top).symlink_to(distribution(name).locate_file(top))
    binaries = "Scripts" if sys.platform == "win32" else "bin"
    interpreter = root / "venv" / binaries / "python"
    site = subprocess.run([interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                          capture_output=True, text=True, check=True).stdout.strip()
    (Path(site) / "packages.pth").write_text(f"{packages}\n")

    def run(*arguments, cwd=root):
        return subprocess.run([interpreter, *map(str, arguments)], capture_output=True, text=True, cwd=cwd)

    run.site = Path(site)
    return run


@pytest.fixture
def installed(environment):
    done = environment("-m", "flambeau", "alias", "install")
    assert done.returncode == 0, done.stderr
    yield environment
    environment("-m", "flambeau", "alias", "remove")


def output(run, code, cwd=None):
    done = run("-c", textwrap.dedent(code), **({"cwd": cwd} if cwd else {}))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_install_status_remove(environment):
    def command(action):
        done = environment("-m", "flambeau", "alias", action)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    before = sorted(environment.site.iterdir())
    assert command("status") == (
        1, "torch is not installed; `flambeau alias install` makes `import torch` mean flambeau", "")
    assert command("remove") == (1, "", "flambeau alias remove: the alias is not installed in this environment")
    for _ in range(2):
        assert command("install") == (
            0, f"import torch now means flambeau: torch 2.13.0+flambeau in {environment.site}", "")
    meaning = f"import torch means flambeau {flambeau.__version__}, as PyTorch 2.13.0 ({environment.site / 'torch'})"
    assert command("status") == (0, meaning, "")
    assert command("remove") == (0, f"removed torch 2.13.0+flambeau from {environment.site}", "")
    assert sorted(environment.site.iterdir()) == before


def test_torch_is_flambeau(installed):
    assert output(installed, """
        import torch.nn.functional as F
        import functorch, torch, torch.utils.checkpoint, torch.compiler, flambeau, sys, importlib.util
        assert torch is flambeau and F is flambeau.nn.functional and functorch is flambeau.functorch
        assert sys.modules["torch"] is flambeau and sys.modules["torch.nn"] is flambeau.nn
        assert importlib.util.find_spec("torch").name == "flambeau"
        assert torch.__name__ == "torch" and torch.torch is torch and torch.IntType.__module__ == "torch"
        print(torch.float32, torch.__version__.split("+")[0])
    """) == "torch.float32 2.13.0\n"


def test_worker_processes_import_the_same(installed, tmp_path):
    script = tmp_path / "main.py"
    script.write_text(textwrap.dedent("""
        import multiprocessing
        import torch

        def square(x):
            import flambeau
            assert torch is flambeau
            return x * x

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(square, [torch.tensor(3.)]))
    """))
    done = installed(script)
    assert done.stdout == "[tensor(9.)]\n", done.stderr


def test_the_metadata_is_that_of_an_installed_distribution(installed):
    assert output(installed, """
        import base64, hashlib, importlib.metadata as metadata
        torch = metadata.distribution("torch")
        print(torch.version, metadata.packages_distributions()["torch"], torch.read_text("INSTALLER").strip())
        for file in torch.files:
            if file.hash is not None:
                digest = hashlib.new(file.hash.mode, file.read_binary()).digest()
                assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value
                assert file.size == len(file.read_binary())
        print(len(torch.files))
    """) == "2.13.0+flambeau ['torch'] flambeau\n7\n"


def test_pytorch_is_not_replaced(environment, tmp_path):
    for name in ("torch", "functorch"):
        package = environment.site / name
        package.mkdir()
        (package / "__init__.py").write_text("")
        try:
            done = environment("-m", "flambeau", "alias", "install")
            assert done.returncode == 1
            assert done.stderr.startswith(f"flambeau alias install: there is a module {name} here already: ")
        finally:
            (package / "__init__.py").unlink()
            package.rmdir()
    metadata = environment.site / "torch-2.13.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: torch\nVersion: 2.13.0\n")
    try:
        done = environment("-m", "flambeau", "alias", "install")
        assert done.returncode == 1
        assert done.stderr.startswith("flambeau alias install: PyTorch 2.13.0 is installed here (")
        assert environment("-m", "flambeau", "alias", "remove").returncode == 1
    finally:
        (metadata / "METADATA").unlink()
        metadata.rmdir()


def test_without_flambeau_the_import_says_what_is_missing(installed):
    done = installed("-I", "-S", "-c", f"import sys; sys.path.append({str(installed.site)!r}); import torch")
    assert done.returncode == 1
    assert "torch stands for flambeau in this environment, and flambeau is not installed" in done.stderr
