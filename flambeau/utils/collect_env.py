"""`torch.utils.collect_env`: versions of Python and packages, and the machine; `python -m torch.utils.collect_env`.

Functions take `run_lambda`, which runs a command as `run` does.
"""

from __future__ import annotations

import json
import locale
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..version import __version__

Run = Callable[[Any], tuple[int, str, str]]
TORCH_AVAILABLE = True  #: whether the library itself can be imported

#: parts of the names of packages that a report lists
COMMON_PATTERNS = ["torch", "numpy", "triton", "optree", "flambeau", "llvmlite"]
NVIDIA_PATTERNS = [*(f"cuda-{part}" for part in ("cudart", "cupti", "libraries", "opencl", "nvrtc", "runtime")),
                   "cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "nvjitlink", "nvtx"]
ONEAPI_PATTERNS = ["dpcpp-cpp-rt", *(f"intel-{part}" for part in (
    "cmplr-lib-rt", "cmplr-lib-ur", "cmplr-lic-rt", "opencl-rt", "sycl-rt")), "mkl",
    *(f"onemkl-sycl-{part}" for part in ("blas", "dft", "lapack", "rng", "sparse")),
    "intel-openmp", "tbb", "impi-rt", "impi-devel", "oneccl", "oneccl-devel", "intel-pti", "umf", "tcmlib"]
CONDA_PATTERNS = ["cudatoolkit", "soumith", "mkl", "magma"]
PIP_PATTERNS = ["mypy", "flake8", "onnx"]


class SystemEnv(NamedTuple):
    """What a report of an error should contain; None for what could not be found out."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str | None
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str | None
    cuda_module_loading: str
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str
    pip_version: str
    pip_packages: str | None
    conda_packages: str | None
    hip_compiled_version: str
    hip_runtime_version: str
    miopen_runtime_version: str
    caching_allocator_config: dict[str, str]
    is_xnnpack_available: str
    cpu_info: str


# ----- commands ----------------------------------------------------------------------------


def run(command: str | Sequence[str]) -> tuple[int, str, str]:
    """Run a command: its exit status, output and errors."""
    done = subprocess.run(command, shell=isinstance(command, str), capture_output=True, check=False)
    encoding = "oem" if sys.platform == "win32" else locale.getpreferredencoding()
    return done.returncode, done.stdout.decode(encoding).strip(), done.stderr.decode(encoding).strip()


def run_and_read_all(run_lambda: Run, command: Any) -> str | None:
    """The output of a command; None if it failed."""
    status, output, _ = run_lambda(command)
    return output if status == 0 else None


def run_and_parse_first_match(run_lambda: Run, command: Any, regex: str) -> str | None:
    """The first group of a pattern in a command's output; None if there is none."""
    output = run_and_read_all(run_lambda, command)
    found = None if output is None else re.search(regex, output)
    return None if found is None else found.group(1)


def run_and_return_first_line(run_lambda: Run, command: Any) -> str | None:
    """The first line of a command's output; None if it failed."""
    output = run_and_read_all(run_lambda, command)
    return None if output is None else output.split("\n")[0]


# ----- packages ----------------------------------------------------------------------------


def _lines_with(output: str, patterns: Sequence[str]) -> str:
    return "\n".join(line for line in output.splitlines()
                     if not line.startswith("#") and any(part in line for part in patterns))


def get_conda_packages(run_lambda: Run, patterns: Sequence[str] | None = None) -> str | None:
    """The packages that conda lists, of those that matter; None without conda."""
    output = run_and_read_all(run_lambda, f"{os.environ.get('CONDA_EXE', 'conda')} list")
    wanted = patterns or (*CONDA_PATTERNS, *COMMON_PATTERNS, *NVIDIA_PATTERNS, *ONEAPI_PATTERNS)
    return None if output is None else _lines_with(output, wanted)


def get_pip_packages(run_lambda: Run, patterns: Sequence[str] | None = None) -> tuple[str, str | None]:
    """The name of pip, and the packages that it lists, of those that matter."""
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    output = run_and_read_all(run_lambda, [sys.executable, "-mpip", "list", "--format=freeze"])
    wanted = patterns or (*PIP_PATTERNS, *COMMON_PATTERNS, *NVIDIA_PATTERNS, *ONEAPI_PATTERNS)
    return "pip3", None if output is None else _lines_with(output, wanted)


_PACKAGE_QUERIES = {"dpkg": (2, "dpkg -l | grep {}"), "dnf": (1, "dnf list | grep {}"),
                    "yum": (1, "yum list | grep {}"), "zypper": (2, "zypper info {} | grep Version")}


def _package_manager() -> str:
    import shutil

    if get_platform() != "linux":
        return "N/A"
    return next((name for name in _PACKAGE_QUERIES if shutil.which(name)), "N/A")


def get_linux_pkg_version(run_lambda: Run, pkg_name: str) -> str:
    """The version of a package of the system; "N/A" if it is not there."""
    manager = _package_manager()
    if manager == "N/A":
        return "N/A"
    field, query = _PACKAGE_QUERIES[manager]
    fields = (run_and_read_all(run_lambda, query.format(pkg_name)) or "").split()
    return fields[field] if len(fields) > field else "N/A"


# ----- compilers and devices ---------------------------------------------------------------


def get_gcc_version(run_lambda: Run) -> str | None:
    """The version of gcc."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Run) -> str | None:
    """The version of clang."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """The version of CMake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_nvidia_smi() -> str:
    """The command of NVIDIA's system management interface."""
    if get_platform() == "win32":
        system = os.path.join(os.environ.get("SYSTEMROOT", "C:\\Windows"), "System32", "nvidia-smi")
        programs = os.path.join(os.environ.get("PROGRAMFILES", "C:\\Program Files"), "NVIDIA Corporation", "NVSMI",
                                "nvidia-smi")
        for candidate in (system, programs):
            if os.path.exists(candidate):
                return f'"{candidate}"'
    return "nvidia-smi"


def get_nvidia_driver_version(run_lambda: Run) -> str | None:
    """The version of NVIDIA's driver."""
    return run_and_parse_first_match(run_lambda, get_nvidia_smi(), r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda: Run) -> str | None:
    """The models of NVIDIA's GPUs, without their identifiers."""
    output = None if get_platform() == "darwin" else run_and_read_all(run_lambda, get_nvidia_smi() + " -L")
    return None if output is None else re.sub(r" \(UUID: .+?\)", "", output)


def get_running_cuda_version(run_lambda: Run) -> str | None:
    """The version of CUDA's compiler."""
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_cudnn_version(run_lambda: Run) -> str | None:
    """The paths of the libraries of cuDNN."""
    command = ("ls /usr/local/cuda/lib/libcudnn*" if get_platform() == "darwin"
               else 'ldconfig -p | grep libcudnn | rev | cut -d" " -f1 | rev')
    status, output, _ = run_lambda(command)
    if not output or status not in (0, 1):
        library = os.environ.get("CUDNN_LIBRARY")
        return os.path.realpath(library) if library is not None and os.path.isfile(library) else None
    files = sorted({path for path in map(os.path.realpath, output.split("\n")) if os.path.isfile(path)})
    if len(files) < 2:
        return files[0] if files else None
    return "Probably one of the following:\n" + "\n".join(files)


def get_intel_gpu_driver_version(run_lambda: Run) -> str:
    """The versions of the packages of Intel's driver."""
    manager = _package_manager()
    names = {"dpkg": ("intel-opencl-icd", "level-zero", "libze1")}.get(
        manager, () if manager == "N/A" else ("intel-opencl", "level-zero"))
    versions = [(name, get_linux_pkg_version(run_lambda, name)) for name in names]
    return "\n".join(f"* {name}:\t{version}" for name, version in versions if version != "N/A")


def get_intel_gpu_onboard(run_lambda: Run) -> str:
    """The models of Intel's GPUs that the system has."""
    output = run_and_read_all(run_lambda, "xpu-smi discovery -j") if get_platform() == "linux" else None
    if not output:
        return "N/A"
    try:
        devices = json.loads(output).get("device_list", [])
    except ValueError as error:
        return f"{output}\n{error}"
    return "\n".join(f"* {device['device_name']}" for device in devices) or "N/A"


def get_intel_gpu_detected(run_lambda: Run) -> str:
    """The GPUs of Intel that the library can use: "N/A"."""
    return "N/A"


def get_cuda_module_loading_config() -> str:
    """How CUDA loads modules: "N/A", there is no CUDA."""
    return "N/A"


def get_cachingallocator_config() -> dict[str, str]:
    """The environment variables that configure the allocator of GPUs."""
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def is_xnnpack_available() -> str:
    """Whether XNNPACK is used."""
    return "False"


# ----- the system --------------------------------------------------------------------------


def get_platform() -> str:
    """The system: "linux", "win32", "cygwin", "darwin" or `sys.platform`."""
    return next((name for name in ("linux", "win32", "cygwin", "darwin") if sys.platform.startswith(name)),
                sys.platform)


def get_cpu_info(run_lambda: Run) -> str:
    """What the system says about its processors."""
    command = {"linux": "lscpu", "darwin": "sysctl -n machdep.cpu.brand_string"}.get(get_platform())
    if command is None:
        return f"{platform.processor()}, {os.cpu_count()} processors"
    status, output, errors = run_lambda(command)
    return output if status == 0 else errors


def get_mac_version(run_lambda: Run) -> str | None:
    """The version of macOS."""
    return run_and_parse_first_match(run_lambda, "sw_vers -productVersion", r"(.*)")


def get_windows_version(run_lambda: Run) -> str:
    """The version of Windows."""
    return platform.platform()


def get_lsb_version(run_lambda: Run) -> str | None:
    """The name of a Linux distribution by `lsb_release`."""
    return run_and_parse_first_match(run_lambda, "lsb_release -a", r"Description:\t(.*)")


def check_release_file(run_lambda: Run) -> str | None:
    """The name of a Linux distribution by its release file."""
    return run_and_parse_first_match(run_lambda, "cat /etc/*-release", r'PRETTY_NAME="(.*)"')


def get_os(run_lambda: Run) -> str | None:
    """The name and version of the operating system."""
    kind, machine = get_platform(), platform.machine()
    if kind in ("win32", "cygwin"):
        return get_windows_version(run_lambda)
    if kind == "darwin":
        version = get_mac_version(run_lambda)
        return None if version is None else f"macOS {version} ({machine})"
    if kind == "linux":
        return f"{get_lsb_version(run_lambda) or check_release_file(run_lambda) or kind} ({machine})"
    return kind


def get_python_platform() -> str:
    """The platform by Python."""
    return platform.platform()


def get_libc_version() -> str:
    """The name and version of the C library; "N/A" elsewhere than on Linux."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


# ----- the report --------------------------------------------------------------------------


def get_env_info() -> SystemEnv:
    """The versions and the machine."""
    pip_version, pip_packages = get_pip_packages(run)
    return SystemEnv(
        torch_version=f"flambeau {__version__}", is_debug_build="False", cuda_compiled_version=None,
        gcc_version=get_gcc_version(run), clang_version=get_clang_version(run), cmake_version=get_cmake_version(run),
        os=get_os(run), libc_version=get_libc_version(),
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)".replace("\n", " "),
        python_platform=get_python_platform(), is_cuda_available="False",
        cuda_runtime_version=get_running_cuda_version(run), cuda_module_loading=get_cuda_module_loading_config(),
        nvidia_driver_version=get_nvidia_driver_version(run), nvidia_gpu_models=get_gpu_info(run),
        cudnn_version=get_cudnn_version(run), is_xpu_available="False", pip_version=pip_version,
        pip_packages=pip_packages, conda_packages=get_conda_packages(run), hip_compiled_version="N/A",
        hip_runtime_version="N/A", miopen_runtime_version="N/A",
        caching_allocator_config=get_cachingallocator_config(), is_xnnpack_available=is_xnnpack_available(),
        cpu_info=get_cpu_info(run))


env_info_fmt = """
PyTorch version: {torch_version}
Is debug build: {is_debug_build}
CUDA used to build PyTorch: {cuda_compiled_version}
ROCM used to build PyTorch: {hip_compiled_version}

OS: {os}
GCC version: {gcc_version}
Clang version: {clang_version}
CMake version: {cmake_version}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
CUDA runtime version: {cuda_runtime_version}
CUDA_MODULE_LOADING set to: {cuda_module_loading}
GPU models and configuration: {nvidia_gpu_models}
Nvidia driver version: {nvidia_driver_version}
cuDNN version: {cudnn_version}
Is XPU available: {is_xpu_available}
HIP runtime version: {hip_runtime_version}
MIOpen runtime version: {miopen_runtime_version}
Is XNNPACK available: {is_xnnpack_available}
Caching allocator config: {caching_allocator_config}

CPU:
{cpu_info}

Versions of relevant libraries:
{pip_packages}
{conda_packages}
""".strip()


def pretty_str(envinfo: SystemEnv) -> str:
    """The versions and the machine as lines of text."""
    values: dict[str, Any] = envinfo._asdict()
    models = envinfo.nvidia_gpu_models
    if models is not None and "\n" in models:
        values["nvidia_gpu_models"] = f"\n{models}\n"
    of_cuda = ("cuda_runtime_version", "nvidia_gpu_models", "nvidia_driver_version")
    if all(values[name] is None for name in of_cuda):
        values |= dict.fromkeys((*of_cuda, "cudnn_version"), "No CUDA")
        values["cuda_compiled_version"] = envinfo.cuda_compiled_version or "None"
    values = {name: {True: "Yes", False: "No"}[value] if isinstance(value, bool) else
              "Could not collect" if value is None else value for name, value in values.items()}
    for name, tag in (("pip_packages", envinfo.pip_version), ("conda_packages", "conda")):
        values[name] = "\n".join(f"[{tag}] {line}" for line in (values[name] or "No relevant packages").split("\n"))
    values["caching_allocator_config"] = envinfo.caching_allocator_config or "N/A"
    return env_info_fmt.format(**values)


def get_pretty_env_info() -> str:
    """The versions and the machine of this process as lines of text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the versions and the machine."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
