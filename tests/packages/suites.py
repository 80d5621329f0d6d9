"""The packages: where their sources are, what they need, and which of their tests run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """A package and its tests.

    Args:
        name: the folder of its source below `--sources`.
        repository: on GitHub.
        revision: the commit or tag whose tests run.
        tests: files and folders, relative to the source.
        install: what is installed besides the package itself: other packages, and what its tests import.
        package: the folder of the package relative to the source; None if a release is named in `install` (packages
            whose build needs a compiler).
        options: of pytest.
        environment: variables of the tests' process.
        scope: what of the package's tests is left out, and why.
    """

    name: str
    repository: str
    revision: str
    tests: tuple[str, ...]
    install: tuple[str, ...] = ()
    package: str | None = "."
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    scope: str = ""

    def options_with(self, select: str | None) -> tuple[str, ...]:
        """The options of pytest, a selection of tests joined with the suite's own: pytest obeys only the last `-k`.

        >>> Suite("a", "a/a", "1", ("tests",), options=("-q", "-k", "not slow or fast")).options_with("cat or dog")
        ('-q', '-k', '(not slow or fast) and (cat or dog)')
        """
        own = self.options.index("-k") if "-k" in self.options else None
        if select is None:
            return self.options
        if own is None:
            return (*self.options, "-k", select)
        joined = f"({self.options[own + 1]}) and ({select})"
        return (*self.options[:own + 1], joined, *self.options[own + 2:])


_OFFLINE = (("HF_HUB_OFFLINE", "1"), ("TRANSFORMERS_OFFLINE", "1"))

_MORE_MODELS = (
    "albert", "bart", "beit", "blip", "blip_2", "bloom", "convnext", "deberta_v2", "deformable_detr", "detr",
    "distilbert", "dpt", "electra", "falcon", "funnel", "gemma", "gemma2", "gpt_neox", "hubert", "layoutlm",
    "layoutlmv3", "levit", "longformer", "marian", "megatron_bert", "mistral", "mixtral", "mobilebert", "mpnet", "opt",
    "pegasus", "phi", "qwen2", "qwen2_moe", "reformer", "roberta", "rwkv", "sam", "segformer", "swin",
    "time_series_transformer", "umt5", "wav2vec2", "xlnet")

SUITES = (
    Suite("einops", "arogozhnikov/einops", "v0.8.2", ("einops/tests",), ("parameterized",),
          environment=(("EINOPS_TEST_BACKENDS", "numpy,torch"),),
          scope="other backends than NumPy and PyTorch"),
    Suite("safetensors", "huggingface/safetensors", "24b0b2857fef49be734b9ab72ce97c09bb25f5b9",
          ("bindings/python/tests/test_pt_comparison.py", "bindings/python/tests/test_pt_model.py",
           "bindings/python/tests/test_simple.py", "bindings/python/tests/test_handle.py",
           "bindings/python/tests/test_threadable.py", "bindings/python/tests/test_multithreaded.py",
           "bindings/python/tests/test_pread_backend.py"), ("safetensors>=0.8.0rc0",), package=None,
          scope="other frameworks"),
    Suite("torchdiffeq", "rtqichen/torchdiffeq", "657943acefa826ef04c025ebeb1ff5e9d60dc268",
          ("tests/api_tests.py", "tests/event_tests.py", "tests/gradient_tests.py", "tests/norm_tests.py",
           "tests/odeint_tests.py"), ("scipy",)),
    Suite("torchmetrics", "Lightning-AI/torchmetrics", "dab033394560ab3ce05e3d14c13f32e4cde6b351",
          tuple(f"tests/unittests/{folder}" for folder in ("bases", "classification", "regression", "retrieval",
                                                           "clustering", "nominal", "wrappers")),
          ("scikit-learn", "scipy", "pandas", "cloudpickle", "psutil", "lightning-utilities", "fire", "statsmodels",
           "dython", "netcal", "fairlearn", "permetrics", "phmdoctest", "requests", "cachier", "properscoring",
           "pytest-doctestplus"),
          options=("--rootdir=tests", "-k", "not ddp and not Ddp and not DDP"),
          scope="distributed; audio, image, text and detection metrics, whose references are other packages"),
    Suite("x-transformers", "lucidrains/x-transformers", "9252ed7838021ee61e6c5be0930b3a9a88efdf06", ("tests",)),
    Suite("lightning", "Lightning-AI/pytorch-lightning", "7f0c3436cd3f6ad3753125672024fc415cbcb414",
          ("tests/tests_pytorch/callbacks", "tests/tests_pytorch/core", "tests/tests_pytorch/loops",
           "tests/tests_pytorch/models", "tests/tests_pytorch/trainer", "tests/tests_pytorch/utilities",
           "tests/tests_pytorch/loggers", "tests/tests_pytorch/tuner", "tests/tests_pytorch/overrides"),
          ("pytest-rerunfailures", "pytest-random-order", "cloudpickle", "scikit-learn", "pandas", "psutil",
           "numpy", "tensorboard", "matplotlib", "torchmetrics", "jsonargparse[signatures]", "rich", "hydra-core"),
          options=("-k", "not ddp and not fsdp and not distributed and not spawn and not deepspeed"),
          environment=(("PACKAGE_NAME", "lightning"),),
          scope="strategies, plugins and accelerators of several processes or devices"),
    Suite("timm", "huggingface/pytorch-image-models", "aa4b5850c1543fa488abf260f18390eda46cf85d",
          ("tests/test_models.py", "tests/test_layers.py", "tests/test_layers_drop.py", "tests/test_layers_pool.py",
           "tests/test_optim.py", "tests/test_scheduler.py", "tests/test_utils.py"),
          ("torchvision==0.28.0", "pyyaml", "huggingface_hub", "safetensors", "expecttest"),  # newer: another torch
          environment=_OFFLINE),
    Suite("transformers", "huggingface/transformers", "v5.2.0",
          tuple(f"tests/models/{model}/test_modeling_{model}.py" for model in
                ("gpt2", "llama", "bert", "t5", "vit", "whisper", "clip", "mamba", *_MORE_MODELS)),
          ("huggingface_hub>=1.2.1", "tokenizers>=0.22", "parameterized", "httpx", "sentencepiece", "protobuf",
           "pillow", "psutil", "datasets", "evaluate", "accelerate", "timeout-decorator", "rich", "scipy",
           "pytest-rerunfailures", "pytest-asyncio", "pytest-order", "pytest-subtests", "beautifulsoup4"),
          environment=_OFFLINE, scope="other models than these 52; tests that download weights"),
    Suite("accelerate", "huggingface/accelerate", "v1.15.0",
          tuple(f"tests/test_{name}.py" for name in (
              "accelerator", "big_modeling", "compile", "data_loader", "dataclasses", "hooks", "imports",
              "kwargs_handlers", "launch", "logging", "memory_utils", "modeling_utils", "offload", "optimizer",
              "state_checkpointing", "utils")),
          ("parameterized", "psutil", "transformers", "evaluate", "datasets", "pandas", "scipy", "pytest-subtests",
           "pytest-order"),
          environment=_OFFLINE,
          scope="tests that start processes (command line, launcher, examples, schedulers, metrics) or download "
                "weights; quantization"),
    Suite("linear_operator", "cornellius-gp/linear_operator", "v0.6.1", ("test",), ("scipy", "jaxtyping", "mpmath")),
    Suite("gpytorch", "cornellius-gp/gpytorch", "v1.15.2", ("test",), ("scipy", "scikit-learn", "linear_operator")),
    Suite("torch-geometric", "pyg-team/pytorch_geometric", "5c6461b2305ad068a6d61165b3c55852a11aaa41",
          ("test/nn", "test/data", "test/loader", "test/transforms", "test/utils", "test/explain", "test/metrics",
           "test/test_edge_index.py", "test/test_index.py"), ("scipy", "scikit-learn", "pandas", "networkx", "onnx"),
          scope="torch-sparse, pyg-lib and other compiled extensions"),
    Suite("ignite", "pytorch/ignite", "de08e799cfb55a6cf4aa778575d6bad725385453",
          ("tests/ignite/engine", "tests/ignite/handlers", "tests/ignite/metrics", "tests/ignite/base",
           "tests/ignite/test_utils.py"),
          ("scikit-learn", "scipy", "pandas", "matplotlib", "tqdm", "tensorboard", "dill", "filelock", "rouge-score",
           "nltk", "scikit-image", "pycocotools", "fairlearn"),
          options=("-m", "not distributed and not multinode_distributed and not tpu", "-k", "not distrib"),
          scope="distributed; loggers of services"),
    Suite("tensordict", "pytorch/tensordict", "a1a061e3dd4b4c892925525a726a72c9eef9a0cc",
          ("test/tensordict", "test/nn", "test/tensorclass", "test/memmap", "test/utils"),
          ("tensordict>=0.15", "pyyaml", "h5py"), package=None,
          environment=(("PYTHONSAFEPATH", "1"),),  # the source's extension is not built: the release is imported
          scope="distributed, compile, store; the C++ extension is PyTorch's ABI, its Python fallback runs"),
    Suite("opt_einsum", "dgasmith/opt_einsum", "2ebc7b809cf0e1f584fe70bc90d2c0e6b5b7c521",
          ("opt_einsum/tests/test_backends.py", "opt_einsum/tests/test_contract.py",
           "opt_einsum/tests/test_edge_cases.py", "opt_einsum/tests/test_sharing.py"),
          options=("-k", "torch or contract"), scope="other backends than NumPy and PyTorch"),
    Suite("higher", "facebookresearch/higher", "15a247ac06cac0d22601322677daff0dcfff062e", ("tests",),
          ("parameterized",)),
    Suite("torch-optimizer", "jettify/pytorch-optimizer", "19c3e41952b94f2d60db06e559ee9a1433b25e53", ("tests",),
          options=("-o", "addopts=")),
    Suite("pytorch_optimizer", "kozistr/pytorch_optimizer", "7a076d2f8f09735e82f9ec1d2d389ec2526bbdbb", ("tests",),
          options=("-o", "addopts=")),
    Suite("vector-quantize-pytorch", "lucidrains/vector-quantize-pytorch", "0d7d1aa83334b6f2f8a40306bece75cdaa13d065",
          ("tests",)),
    Suite("zuko", "probabilists/zuko", "1063ae415bcd53bfad1da3a27b5519491365afdd", ("tests",)),
    Suite("nflows", "bayesiains/nflows", "5d22344436a4a5f4c3b93a3b99322a6bfe374c08", ("tests",),
          ("torchtestcase", "umnn"),
          options=("-o", "python_files=*_test.py")),
    Suite("normflows", "VincentStimper/normalizing-flows", "c6616b1a9f04c0e894b9e045e66bd504db17ef5e", ("normflows",),
          ("scipy",), options=("-o", "python_files=*_test.py")),
    Suite("skorch", "skorch-dev/skorch", "5db0ddc962117a2c3a646910ecd2e70253ff8e87", ("skorch/tests",),
          ("flaky", "pandas", "transformers", "safetensors", "accelerate"), options=("-o", "addopts="),
          environment=_OFFLINE),
    Suite("captum", "pytorch/captum", "faac08773131888714b15709b28494ebeea7f6eb", ("tests/attr",),
          ("flask", "flask-compress", "parameterized", "scikit-learn"), scope="insights, concepts, influence"),
    Suite("pyro", "pyro-ppl/pyro", "ff6ae1c9572591791aae8842bcd702fcf0b46fd6",
          ("tests/ops", "tests/distributions", "tests/infer", "tests/poutine", "tests/params", "tests/nn"),
          ("scipy", "pandas", "scikit-learn"), options=("-o", "addopts="), scope="examples, contrib, perf"),
    Suite("botorch", "meta-pytorch/botorch", "eea35f51a9d948ae0949144f4ae7814acbec1001", ("test",)),
    Suite("kornia", "kornia/kornia", "b4f5a78a13891c7ac4c1cd9695941380273e981d",
          ("tests/geometry", "tests/filters", "tests/color", "tests/losses", "tests/enhance", "tests/metrics",
           "tests/morphology"), ("scipy",), options=("-o", "addopts="),
          scope="augmentations, features and models, whose weights are downloaded"),
    Suite("peft", "huggingface/peft", "5d602fdbff04c33c1c4de55cda9d4ae1d7cb7e40",
          ("tests/test_custom_models.py", "tests/test_tuners_utils.py", "tests/test_initialization.py"),
          ("transformers", "accelerate", "datasets", "parameterized", "scipy"), options=("-o", "addopts="),
          environment=_OFFLINE, scope="tests that download weights"),
    Suite("diffusers", "huggingface/diffusers", "58eb52c0803ea9af3abec60841c2a093bdf1f951", ("tests/schedulers",),
          ("transformers", "accelerate", "parameterized", "scipy"), environment=_OFFLINE,
          scope="models and pipelines"),
    Suite("laplace", "aleximmer/Laplace", "44ea62ac1f8cfd6f797f31c75e2cf34414fdddae", ("tests",),
          ("asdfghjkl", "backpack-for-pytorch", "curvlinops-for-pytorch<3", "scipy", "transformers"),
          options=("-o", "addopts=")),
    Suite("pytorch-metric-learning", "KevinMusgrave/pytorch-metric-learning",
          "216a792c22b0154d3d3bf008a7317edc7d677e71",
          ("tests/losses", "tests/miners", "tests/distances", "tests/reducers"), ("scikit-learn",),
          environment=(("TEST_DEVICE", "cpu"),), scope="datasets, trainers, testers"),
    Suite("torchinfo", "TylerYep/torchinfo", "5c4164f1e2e185ce33c597dbe00535bf8ed2b930", ("tests",),
          options=("-o", "python_files=*_test.py", "--no-output")),
    Suite("stable-baselines3", "DLR-RM/stable-baselines3", "e05d2dbe6eda0acd0ef2e316e3e4065677add3eb",
          ("tests/test_distributions.py", "tests/test_utils.py", "tests/test_spaces.py",
           "tests/test_custom_policy.py"), ("gymnasium", "pandas", "matplotlib"), scope="training of agents"),
    Suite("e3nn", "e3nn/e3nn", "2aa7f58440a06b15352a2cbce01fa4c26f824969", ("tests",), ("scipy",)),
    Suite("torchsde", "google-research/torchsde", "eb3a00e31cbd56176270066ed2f62c394cf6acb7", ("tests",), ("scipy",)),
    Suite("torchcde", "patrick-kidger/torchcde", "9ff6aba4738989dc5fe3aee86d45812c318f6231", ("test",),
          ("torchdiffeq", "torchsde")),
    Suite("geomloss", "jeanfeydy/geomloss", "00e493f36bd6cc8471526e59afc07193a1926e47", ("tests",),
          ("hypothesis", "pytest-check", "pot"), options=("-o", "addopts="),
          environment=(("SETUPTOOLS_SCM_PRETEND_VERSION", "0.2.6"),)),
    Suite("entmax", "deep-spin/entmax", "c2bec6d5e7d649cba7766c2172d89123ec2a6d70", ("entmax",)),
    Suite("darts", "unit8co/darts", "2be8e43fbdc1265209f33bbe8bae81f3e4d9146f",
          ("darts/tests/models/components", "darts/tests/models/forecasting/test_torch_forecasting_model.py",
           "darts/tests/models/forecasting/test_RNN.py", "darts/tests/models/forecasting/test_TCN.py",
           "darts/tests/models/forecasting/test_TFT.py", "darts/tests/models/forecasting/test_nbeats_nhits.py",
           "darts/tests/models/forecasting/test_transformer_model.py",
           "darts/tests/models/forecasting/test_dlinear_nlinear.py"),
          ("pytorch-lightning", "tensorboardx", "huggingface-hub", "safetensors", "testfixtures", "plotly"),
          scope="models that are not networks"),
    Suite("TransformerLens", "TransformerLensOrg/TransformerLens", "4cd36aaeb5dad931d085bd5d46a12b402fe15272",
          ("tests/unit",), ("jaxtyping", "mock"), options=("-o", "addopts="), environment=_OFFLINE,
          scope="tests that download weights"),
    Suite("pfrl", "pfnet/pfrl", "c8cb3328899509be9ca68ca9a6cd2bcfce95725c", ("tests",), ("gym", "scipy", "optuna"),
          options=("-m", "not gpu and not slow", "-k", "not Multiprocess"), scope="processes with environments"),
    Suite("pytorch-frame", "pyg-team/pytorch-frame", "f6ff914e6668a48831be020b2b7f5db11f43089f", ("test",),
          ("scikit-learn", "torchmetrics"),
          options=("-o", "addopts=")),
    Suite("keras", "keras-team/keras", "3422977a5e38fb2f7709aaa9a08e47f0c43d0f60",
          ("keras/src/ops", "keras/src/layers", "keras/src/losses", "keras/src/optimizers", "keras/src/trainers",
           "keras/src/models", "keras/src/metrics", "keras/src/random", "keras/src/saving", "keras/src/callbacks",
           "keras/src/backend/common", "keras/src/utils", "keras/src/initializers", "keras/src/quantizers"),
          ("scipy", "scikit-learn", "pillow", "pandas", "requests", "protobuf", "optree", "dm-tree", "absl-py", "h5py",
           "jax"),
          options=("--continue-on-collection-errors",),
          environment=(("KERAS_BACKEND", "torch"), ("JAX_PLATFORMS", "cpu")), scope="tests that need TensorFlow"),
    Suite("torchio", "TorchIO-project/torchio", "2b019d2a9659c838408c73ae77327ac5eb87b190", ("tests",),
          ("scipy", "matplotlib", "pandas"), scope="tests that download images",
          options=("-o", "addopts=")),
    Suite("geoopt", "geoopt/geoopt", "07598cdbf8751770c4dcd78d509cd678a67ce85b", ("tests",), ("scipy",)),
    Suite("opacus", "pytorch/opacus", "4d0ebc84613d214fbfd37fbfd1390e3747a625ce", ("opacus/tests",),
          ("scipy", "opt-einsum", "hypothesis", "torchvision==0.28.0"), options=("-k", "not gpu and not distributed"),
          scope="tests of several GPUs"),
    Suite("torchquad", "esa/torchquad", "4e5e95b0c585c53e58d51c37ebbae0ce13231a60", ("tests",), ("scipy", "autoray")),
    Suite("julius", "adefossez/julius", "126d7eea519875e43c4bd61435b9185ace5df24c", ("tests",), ("resampy",)),
    Suite("curated-transformers", "explosion/curated-transformers", "e7e7e9dacf5e9013c9d1ed16e7233232369147b4",
          ("curated_transformers/tests/layers", "curated_transformers/tests/generation",
           "curated_transformers/tests/util", "curated_transformers/tests/quantization"),
          ("transformers==5.2.0",), environment=_OFFLINE, scope="tests that download models"),
    Suite("snntorch", "jeshraghian/snntorch", "634fc22385ec5581998e62787bbe39b53662140f", ("tests",),
          ("nir", "nirtorch", "matplotlib", "pandas")),
    Suite("pytorch_wavelets", "fbcotter/pytorch_wavelets", "9a0c507f04f43c5397e384bb6be8340169b2fd9a", ("tests",),
          ("PyWavelets", "dtcwt", "six", "py3nvml", "setuptools")),
    Suite("ptwt", "v0lta/PyTorch-Wavelet-Toolbox", "6c3b62c1fe02ddca0f0d8662d73582e9f9be48e5", ("tests",),
          ("scipy", "typing_extensions")),
    Suite("xitorch", "xitorch/xitorch", "ad9eec1b02804d0934e091640559cb66e3ec7f2c", ("xitorch/_tests",), ("scipy",),
          package=None, options=("--ignore=xitorch/_tests/test_integrate_speed.py",)),
    Suite("norse", "norse/norse", "065a3b45cf13bc8156d18987380f6d26c09f08a2", ("norse/torch",),
          ("nir", "nirtorch", "scipy")),
    Suite("foolbox", "bethgelab/foolbox", "2513a9a8675d7017e5266d3b0ed89124cb436ec5", ("tests",),
          ("eagerpy", "scipy", "requests", "GitPython"), options=("--backend", "pytorch"),
          scope="other frameworks; attacks that need numba"),
    Suite("advertorch", "BorealisAI/advertorch", "e063e341c87d9a621ae1a8f72c3507d5ea5bd327", ("tests",), ("scipy",)),
    Suite("learn2learn", "learnables/learn2learn", "db5cee3795490071282bbdfa81179ef732349196", ("tests/unit",),
          ("gym<0.27", "cython", "pandas", "scikit-learn", "gsutil", "torchvision==0.28.0"),
          scope="data sets, which are downloaded"),
    Suite("torchview", "mert-kurttutan/torchview", "241d22b5cdeb2c227acee2c85611f0442f15c091", ("tests",),
          ("graphviz", "torchvision==0.28.0", "transformers"), environment=_OFFLINE,
          scope="drawings need the folder tests/test_output in the source"),
    Suite("torch-ema", "fadel/pytorch_ema", "d661859ad4206217afb274be709837d19218b3f8", ("tests",)),
    Suite("sentence-transformers", "UKPLab/sentence-transformers", "85ec64559f4414aa536eca4bf53538291e0a333f",
          ("tests/util", "tests/losses", "tests/evaluation"), ("datasets", "accelerate"), environment=_OFFLINE,
          scope="tests that download models"),
    Suite("segmentation-models-pytorch", "qubvel-org/segmentation_models.pytorch",
          "5006616357631a48c7c8e11977cf5abb00803590", ("tests",), ("torchvision==0.28.0", "timm"),
          environment=_OFFLINE, scope="tests that download weights"),
    Suite("efficientnet-pytorch", "lukemelas/EfficientNet-PyTorch", "7e8b0d312162f335785fb5dcfa1df29a75a1783a",
          ("tests",), scope="tests that download weights"),
    Suite("torchopt", "metaopt/torchopt", "960fb0aa53f27bad1af0bdf018b5ad4be077949a", ("tests",),
          ("torchopt", "optree", "jax", "jaxopt", "optax", "graphviz"), package=None,
          options=("-o", "addopts=", "-W", "ignore"), scope="the extension in C++ is not built"),
    Suite("tianshou", "thu-ml/tianshou", "f2402056b03acafeedf2518a5088db55add004ab", ("test/base",),
          ("tianshou", "gymnasium", "pymunk"), package=None, options=("-o", "addopts="), scope="training of agents"),
    Suite("monai", "Project-MONAI/MONAI", "d388d1c6fec8cb3a0eebee5b5a0b9776ca59ca83",
          ("tests/losses", "tests/networks/blocks", "tests/networks/layers", "tests/transforms/intensity",
           "tests/transforms/spatial", "tests/metrics"),
          ("monai", "parameterized", "scipy", "einops", "nibabel", "scikit-image"), package=None,
          options=("-o", "addopts="), scope="bundles and applications; archives of TorchScript"),
    Suite("neuraloperator", "neuraloperator/neuraloperator", "93d3f0633e048c915004cd782cb339acf06e1157",
          ("neuralop",), ("neuraloperator", "flaky", "tensorly-torch", "scipy", "h5py", "opt-einsum"), package=None,
          options=("-o", "addopts=")),
)
