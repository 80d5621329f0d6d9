"""The programs: their scripts and arguments, the data they expect, and the packages they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import data

HERE = Path(__file__).parent
STUBS = HERE / "stubs"

Script = tuple[str, ...]  # its path and its arguments


@dataclass(frozen=True)
class Program:
    """A training program.

    Args:
        name: on the command line and in the table.
        scripts: run one after the other, in the program's folder.
        source: the repository and the folder in it, `examples/mnist`; None for a program of this package.
        needs: packages besides `torch` and NumPy.
        prepare: makes the data; its argument is the folder in which the program runs.
        backwards: calls of backward in a step.
        ends: the program ends by itself, after this many steps (or about as many): it is not cut off.
        prints: what is printed is compared, too, number by number; for programs without losses it is all there is.
        masked: a pattern of what is printed and is not compared: times, process numbers.
        environment: variables; `{folder}` is the program's folder.
    """

    name: str
    scripts: tuple[Script, ...]
    source: str | None = None
    needs: tuple[str, ...] = ()
    prepare: Callable[[Path], None] | None = None
    backwards: int = 1
    ends: bool = False
    prints: bool = False
    masked: str = ""
    environment: tuple[tuple[str, str], ...] = ()


def _own(name: str, backwards: int = 1, needs: tuple[str, ...] = ()) -> Program:
    return Program(name, ((str(HERE / "programs" / f"{name}.py"), "--steps", "{steps}"),), needs=needs,
                   backwards=backwards, ends=True, prints=True)


def _tutorial(name: str, backwards: int = 1) -> Program:
    return Program(name, ((str(HERE / "programs" / "tutorials" / f"{name}.py"), "--steps", "{steps}"),),
                   backwards=backwards, ends=True, prints=True)


def _mnist(train: int, test: int, place: str = "../data") -> Callable[[Path], None]:
    return lambda folder: data.mnist(folder / place, train, test)


def _super_resolution(folder: Path) -> None:
    images = folder / "dataset" / "BSDS300" / "images"
    data.photographs(images / "train", 20, 1)
    data.photographs(images / "test", 4, 2)


def _fast_style(folder: Path) -> None:
    data.photographs(folder / "made" / "pictures", 8, 1, 64)
    data.photographs(folder / "made", 1, 2, 64)
    data.vgg16(folder / "weights")


_VISION = ("torchvision", "pillow")
_GEOMETRIC = ("torch-geometric",)

OWN = (
    _own("vae"), _own("gan", backwards=2), _own("diffusion"), _own("gnn"), _own("ppo"), _own("neural_ode"),
    _own("transformer"), _own("lstm_packed"),
    *map(_tutorial, (
        "byte_pairs", "dqn", "experts", "flow", "gpt_lecture", "lenet_lazy", "llama_style", "makemore", "maml",
        "micrograd", "pinn", "regression_scratch", "resnet_finetune", "seq2seq_attention", "sklearn_style",
        "spatial_transformer", "unet_amp", "vit", "vqvae", "word2vec")),
    _own("gnn_geometric", backwards=2, needs=_GEOMETRIC), _own("neural_ode_adaptive", needs=("torchdiffeq",)),
)


def _language(model: str) -> Program:
    # at its default rate of 20 the loss goes up and down, and differences of rounding double at every step
    small = ("--emsize", "64", "--nhid", "64", "--epochs", "1", "--log-interval", "10", "--bptt", "20",
             "--lr", "0.5" if model == "Transformer" else "1")
    return Program(
        f"word_language_model {model}",
        (("main.py", "--model", model, *small), ("generate.py", "--words", "60", "--log-interval", "20")),
        "examples/word_language_model", prepare=lambda folder: data.wikitext(folder / "data" / "wikitext-2"))


_EXAMPLES = (
    Program("regression", (("main.py",),), "examples/regression"),
    Program("mnist", (("main.py", "--epochs", "1", "--log-interval", "5"),), "examples/mnist", _VISION,
            _mnist(3200, 1000), ends=True, prints=True),
    Program("mnist_rnn", (("main.py", "--epochs", "1", "--log-interval", "5"),), "examples/mnist_rnn", _VISION,
            _mnist(3200, 1000), ends=True, prints=True),
    Program("mnist_forward_forward",
            (("main.py", "--epochs", "25", "--train_size", "1000", "--test_size", "500", "--no_accel"),),
            "examples/mnist_forward_forward", (*_VISION, "tqdm"), _mnist(1000, 500, "data"), ends=True, prints=True),
    Program("mnist_hogwild",
            (("main.py", "--num-processes", "1", "--epochs", "1", "--log-interval", "1", "--batch-size", "32"),),
            "examples/mnist_hogwild", _VISION, _mnist(1600, 500), ends=True, prints=True, masked=r"^\d+\t"),
    # at their own rates the losses of siamese_network, dcgan and imagenet go up and down, and differences of rounding
    # grow up to tenfold at every step
    Program("siamese_network", (("main.py", "--batch-size", "8", "--epochs", "1", "--lr", "0.0001"),),
            "examples/siamese_network", _VISION, _mnist(1000, 200)),
    Program("example vae", (("main.py", "--epochs", "1"),), "examples/vae", _VISION, lambda folder: (
        (folder / "results").mkdir(exist_ok=True), data.mnist(folder / "../data", 6400, 500))[-1], ends=True,
        prints=True),
    Program("dcgan", (("main.py", "--dataset", "fake", "--batchSize", "8", "--niter", "1", "--manualSeed", "3",
                        "--lr", "0.000001"),),
            "examples/dcgan", _VISION, backwards=3),
    Program("gcn", (("main.py", "--epochs", "50", "--val-every", "5"),), "examples/gcn",
            prepare=lambda folder: data.cora(folder / "made"), ends=True, prints=True, masked=r"\(\d+\.\d+s\)"),
    Program("gat", (("main.py", "--epochs", "50", "--val-every", "5", "--num-heads", "2", "--hidden-dim", "16"),),
            "examples/gat",
            prepare=lambda folder: data.cora(folder / "made", nodes=1700), ends=True, prints=True,
            masked=r"\(\d+\.\d+s\)"),
    Program("imagenet", (("main.py", "--dummy", "-a", "resnet18", "-b", "4", "-j", "1", "--epochs", "1", "--seed", "1",
                          "--no-accel", "--lr", "0.00001"),), "examples/imagenet", _VISION),
    Program("reinforce", (("reinforce.py",),), "examples/reinforcement_learning", ("gymnasium[classic-control]",)),
    Program("actor_critic", (("actor_critic.py",),), "examples/reinforcement_learning",
            ("gymnasium[classic-control]",)),
    Program("super_resolution",
            (("main.py", "--upscale_factor", "3", "--batchSize", "4", "--testBatchSize", "4", "--nEpochs", "10", "--lr",
              "0.001", "--threads", "1"),
             ("super_resolve.py", "--input_image", "dataset/BSDS300/images/test/000.png", "--model",
              "model_epoch_10.pth", "--output_filename", "out.png")),
            "examples/super_resolution", (*_VISION, "six"), _super_resolution, ends=True, prints=True),
    Program("fast_neural_style",
            (("neural_style/neural_style.py", "train", "--dataset", "made", "--style-image", "made/000.png",
              "--save-model-dir", "made", "--epochs", "13", "--batch-size", "2", "--image-size", "64",
              "--log-interval", "5", "--lr", "0.00001"),),
            "examples/fast_neural_style", _VISION, _fast_style, environment=(("TORCH_HOME", "{folder}/weights"),)),
    Program("time_sequence_prediction", (("generate_sine_wave.py",), ("train.py", "--steps", "4")),
            "examples/time_sequence_prediction", ("matplotlib",),
            environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"), ("MPLBACKEND", "agg"))),  # it loads a NumPy array
    *(_language(model) for model in ("LSTM", "GRU", "RNN_TANH", "RNN_RELU", "Transformer")),
    *(Program(f"fx {name}", ((f"{name}.py",),), "examples/fx", needs, ends=True, prints=True, masked=masked)
      for name, needs, masked in (
          ("inline_function", (), ""), ("invert", (), ""), ("module_tracer", _VISION, ""),
          ("primitive_library", (), ""), ("proxy_based_graph_creation", (), ""), ("replace_op", (), ""),
          ("subgraph_rewriter_basic_use", (), ""), ("wrap_output_dynamically", (), ""),
          ("custom_tracer", ("tabulate",), r"0x[0-9a-f]+"),
          ("profiling_tracer", (*_VISION, "tabulate"), r"[\d.e+-]+([mu]?s\b)?|-{5,}| {2,}"))),
)

_GPT = ("--device=cpu", "--compile={compile}", "--dtype=float32", "--eval_iters=2", "--eval_interval=25",
        "--log_interval=1", "--block_size=64", "--batch_size=12", "--n_layer=4", "--n_head=4", "--n_embd=128",
        "--max_iters=50", "--lr_decay_iters=50", "--dropout=0.2")

_NANOGPT = (
    Program("nanoGPT",
            (("train.py", "config/train_shakespeare_char.py", *(a.format(compile=False) for a in _GPT)),
             ("sample.py", "--out_dir=out-shakespeare-char", "--device=cpu", "--dtype=float32", "--num_samples=1",
              "--max_new_tokens=50")),
            "nanoGPT", ("tiktoken",), lambda folder: data.characters(folder / "data" / "shakespeare_char"),
            ends=True, prints=True, masked=r"time [\d.]+ms, mfu [-\d.]+%"),
)

PROGRAMS = (*OWN, *_EXAMPLES, *_NANOGPT)

#: the repositories: name -> where they are, and the commit whose programs run
REPOSITORIES = {
    "examples": ("pytorch/examples", "main"),
    "nanoGPT": ("karpathy/nanoGPT", "master"),
}

#: what of pytorch/examples does not run here, and why
LEFT_OUT = {
    "language_translation, legacy/snli": "torchtext and spaCy's models, which are downloads",
    "distributed": "torch.distributed: several processes or machines",
    "fx/native_interpreter": "a C++ class registered with TorchScript",
    "cpp": "C++",
}
