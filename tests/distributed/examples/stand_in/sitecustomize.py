"""Let CPUs stand for the accelerators that the scripts ask for, in each of their processes, and record losses.

`FLAMBEAU_EXAMPLES` names the library, which `import torch` is; `FLAMBEAU_EXAMPLES_OUT` the folder of the losses.
"""

import os
import sys


def replace(torch):
    """Replace what needs a GPU."""
    import torch.distributed as dist

    cpu = torch.device("cpu")
    own_start = dist.init_process_group
    own_to, own_module_to, own_load = torch.Tensor.to, torch.nn.Module.to, torch.load
    own_to_empty = torch.nn.Module.to_empty
    own_wrapper, own_backward = torch.nn.parallel.DistributedDataParallel.__init__, torch.Tensor.backward
    torch.accelerator.is_available = lambda *args, **kwargs: True
    torch.accelerator.current_accelerator = lambda *args, **kwargs: cpu
    torch.accelerator.set_device_index = torch.cuda.set_device = lambda *args: None
    torch.accelerator.device_index = lambda *args: None
    torch.accelerator.device_count = torch.cuda.device_count = lambda: int(os.environ.get("LOCAL_WORLD_SIZE", 2))

    torch.Tensor.pin_memory = lambda self, *args: self

    def start(backend=None, **options):
        options.pop("device_id", None)
        return own_start("gloo", **options)

    dist.init_process_group = start
    dist.get_default_backend_for_device = lambda device: "gloo"

    def on_cpu(device):
        named = isinstance(device, int) or (isinstance(device, str) and device.startswith("cuda"))
        return cpu if named and not isinstance(device, bool) else device

    torch.Tensor.to = lambda self, *args, **kwargs: own_to(self, *map(on_cpu, args[:1]), *args[1:], **kwargs)
    torch.nn.Module.to = lambda self, *args, **kwargs: own_module_to(self, *map(on_cpu, args[:1]), *args[1:], **kwargs)
    torch.load = lambda file, map_location=None, **kwargs: own_load(file, on_cpu(map_location), **kwargs)

    def to_empty(self, **options):
        """Zeros, as `reset_parameters` of the FSDP2 example leaves some parameters as they are."""
        own_to_empty(self, **options)
        with torch.no_grad():
            for tensor in (*self.parameters(), *self.buffers()):
                tensor.zero_()
        return self

    torch.nn.Module.to_empty = to_empty

    def wrapper(self, module, device_ids=None, **options):
        own_wrapper(self, module, **options)

    torch.nn.parallel.DistributedDataParallel.__init__ = wrapper

    def backward(self, *args, **kwargs):
        rank = dist.get_rank() if dist.is_initialized() else 0
        value = self.detach()
        value = (value.full_tensor() if hasattr(value, "full_tensor") else value).item()
        with open(os.path.join(os.environ["FLAMBEAU_EXAMPLES_OUT"], str(rank)), "a") as file:
            file.write(f"{value!r}\n")
        return own_backward(self, *args, **kwargs)

    torch.Tensor.backward = backward
    torch.manual_seed(0)


if "RANK" in os.environ or os.environ.get("FLAMBEAU_EXAMPLES_ALONE"):
    if os.environ["FLAMBEAU_EXAMPLES"] == "flambeau":
        from flambeau.alias import install

        install()
    import torch

    torch.set_num_threads(1)
    replace(sys.modules["torch"])
