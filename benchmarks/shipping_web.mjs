// Times WebAssembly modules beside onnxruntime-web in Node: see shipping_web.py.
import { readFile } from "node:fs/promises";
import { timeModels } from "./shipping_web_rows.mjs";

const [seconds, threads] = process.argv.slice(2).map(Number);
// The build for Node has threads, the one for pages ("onnxruntime-web/wasm") has none there.
const ort = await import(threads > 1 ? "onnxruntime-web" : "onnxruntime-web/wasm");
ort.env.wasm.numThreads = threads;
await timeModels(ort, JSON.parse(await readFile("models.json")), {
  seconds,
  threads,
  fetchBytes: readFile,
  importLoader: (name) => import(new URL(`${name}.mjs`, `file://${process.cwd()}/`)),
  processorTime: threads > 1 ? undefined : () => process.cpuUsage().user,
}, console.log);
process.exit(0);
