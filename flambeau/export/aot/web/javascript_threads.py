"""The part of a JavaScript loader that runs a model on several threads: workers that share its memory.

A worker's source is a function of the loader, so that there is no other file: in a page as a blob, which inherits the
page's isolation and may be of another origin than the loader; in Node as text.
"""

from __future__ import annotations

from ..interface import Interface
from ..linking import WASM_STACK
from ..pool_ir import MAX_THREADS
from .memory import PAGE, SharedMemory
from .pool_ir import FAILURE_BYTES

#: functions of the loader's module
_FUNCTIONS = """
// Memory is shared with workers in isolated pages, and in Node, which may have been given Worker, too.
const inPage = globalThis.crossOriginIsolated === true && typeof Worker === "function";
const inNode = !inPage && typeof process === "object" && typeof process.versions?.node === "string";

// How many threads a model gets.
async function countThreads(wanted) {
  if (wanted !== undefined && !(Number.isInteger(wanted) && wanted >= 1 && wanted <= $MAX_THREADS)) {
    throw new RangeError(`threads is from 1 to $MAX_THREADS, not ${wanted}`);
  }
  if (!inPage && !inNode) return 1;
  if (wanted !== undefined) return wanted;
  const processors = inPage ? navigator.hardwareConcurrency : (await import("node:os")).availableParallelism();
  return Math.min(processors, interface_.threads);
}

// What a worker runs: it joins the pool, and returns when the model is closed.
async function join({ module, memory, member, stack }, send) {
  let exports;
  try {
    ({ exports } = await WebAssembly.instantiate(module, { env: { memory } }));
  } catch (error) {
    send(`${error}`);
    return;
  }
  exports.__stack_pointer.value = stack;
  send("ready");
  try {
    exports.$NAME_pool_work(member);
  } catch (error) {
    const at = exports.$NAME_pool_failure();
    const text = new TextEncoder().encode(`${error}`).slice(0, $FAILURE_BYTES - 4);
    new Uint8Array(memory.buffer).set(text, at + 4);
    Atomics.store(new Int32Array(memory.buffer), at / 4, text.length);
  }
}

async function startWorker(data, workers) {
  if (inNode) {
    const threads = await import("node:worker_threads");
    const text = `const { parentPort, workerData } = require("node:worker_threads");
      (${join})(workerData, (message) => parentPort.postMessage(message));`;
    const worker = new threads.Worker(text, { eval: true, execArgv: [], workerData: data });
    workers.push(worker);
    await new Promise((resolve, reject) => {
      worker.once("message", (message) => (message === "ready" ? resolve() : reject(new Error(message))));
      worker.once("error", reject);
    });
    worker.unref(); // a process does not wait for idle workers
    return;
  }
  const text = `onmessage = ({ data }) => (${join})(data, postMessage);`;
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    const worker = new Worker(url);
    workers.push(worker);
    await new Promise((resolve, reject) => {
      worker.onmessage = ({ data: message }) => (message === "ready" ? resolve() : reject(new Error(message)));
      worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(event.message || "the page's policy may forbid workers from blob: URLs"));
      };
      worker.postMessage(data);
    });
  } finally {
    URL.revokeObjectURL(url);
  }
}

// Atomics.wait is forbidden in the thread of a page, which spins instead.
function mayWait(memory) {
  try {
    Atomics.wait(new Int32Array(memory.buffer), 0, 0, 0);
    return 1;
  } catch {
    return 0;
  }
}

const forgotten = new FinalizationRegistry((stop) => stop());

// The threads of a model.
async function startPool(module, memory, exports, threads, stacks) {
  const address = threads > 1 ? exports.$NAME_pool_start(threads, mayWait(memory)) : 0;
  const workers = [];
  let fault = null;

  function stop() {
    if (fault !== null) return;
    fault = new Error("the model $NAME is closed");
    if (threads > 1) exports.$NAME_pool_stop();
    workers.forEach((worker) => worker.terminate());
  }

  function failed(error) {
    stop();
    fault = error;
    return error;
  }

  // The error of a worker, if there is one.
  function failure() {
    const at = exports.$NAME_pool_failure();
    const length = Atomics.load(new Int32Array(memory.buffer), at / 4);
    if (length === 0) return null;
    const text = new Uint8Array(memory.buffer).slice(at + 4, at + 4 + length);
    return new Error(`a thread of $NAME failed: ${new TextDecoder().decode(text)}`);
  }

  function run(...args) {
    if (fault !== null) throw fault;
    const before = failure();
    if (before !== null) throw failed(before);
    try {
      return exports.$NAME_run(...args, address);
    } catch (error) {
      throw failed(failure() ?? error);
    }
  }

  try {
    await Promise.all(Array.from({ length: threads - 1 }, (_, member) => (
      startWorker({ module, memory, member, stack: stacks + (member + 1) * $STACK }, workers))));
  } catch (error) {
    stop();
    throw new Error(`the threads of $NAME have not started (load it with { threads: 1 }): ${error.message}`);
  }
  return { run, stop };
}
"""
#: instructions of `load` that make the memory and the instance
_INSTANCE = """\
  const threads = await countThreads(options.threads);
  const stackBytes = (threads - 1) * $STACK;
  const most = interface_.pages * $PAGE + stackBytes + $OWNED + interface_.most;
  const memory = new WebAssembly.Memory(
    { initial: interface_.pages, maximum: Math.min(65536, Math.ceil(most / $PAGE)), shared: true });
  const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
  const call = (name, ...args) => exports[`$NAME_${name}`](...args);
  const stacks = up(exports.__heap_base.value);
  const start = stacks + stackBytes;
"""
#: instructions of `load` that start the threads
_START = """\
  reserve(free);
  const pool = await startPool(module, memory, exports, threads, stacks);

"""
#: properties of a model
_MODEL = """\
  model.threads = threads;
  // End the workers; the model cannot be run any more. Workers of a model that is garbage end by themselves.
  model.close = pool.stop;
  forgotten.register(model, pool.stop);
"""


def threads_parts(interface: Interface, memory: SharedMemory) -> tuple[dict[str, object], dict[str, str]]:
    """What the description of the interface has besides, and the parts of the loader's text.

    Args:
        interface: of the module.
        memory: of the module.
    """
    owned = ["up(stateBytes)"]
    if interface.passes_weights:
        owned += [f"up({interface.weights})"] if interface.decodes_weights else []
        owned += ["up(file.byteLength)", "64"] if interface.weights_file else []
    constants = {
        "OWNED": " + ".join(owned),
        "STACK": str(WASM_STACK),
        "PAGE": str(PAGE),
        "MAX_THREADS": str(MAX_THREADS),
        "FAILURE_BYTES": str(FAILURE_BYTES),
    }
    parts = {"FUNCTIONS": _FUNCTIONS, "INSTANCE": _INSTANCE, "START": _START, "MODEL": _MODEL}
    for key, text in parts.items():
        for constant, value in constants.items():
            text = text.replace(f"${constant}", value)
        parts[key] = text
    return {"threads": interface.threads, **memory._asdict()}, parts


__all__ = ["threads_parts"]
