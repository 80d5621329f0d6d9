// Times WebAssembly modules beside onnxruntime-web, on one thread: see shipping_web.py.
import { readFile } from "node:fs/promises";
import * as ort from "onnxruntime-web/wasm";

ort.env.wasm.numThreads = 1;
const models = JSON.parse(await readFile("models.json"));
const seconds = Number(process.argv[2]);
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

async function timed(call) {
  const start = process.cpuUsage().user;
  for (let i = 0; i < 3; i += 1) await call();
  return (process.cpuUsage().user - start) / 3;
}

for (const [name, shape] of Object.entries(models)) {
  const { load } = await import(new URL(`${name}.mjs`, `file://${process.cwd()}/`));
  const model = await load();
  const x = Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => Math.sin(i));
  const session = await ort.InferenceSession.create(await readFile(`${name}.onnx`), { executionProviders: ["wasm"] });
  const feeds = { [session.inputNames[0]]: new ort.Tensor("float32", x, shape) };
  const theirs = (await session.run(feeds))[session.outputNames[0]].data;
  const worst = model(x).reduce((most, each, i) => Math.max(most, Math.abs(each - theirs[i])), 0);
  const times = [[], []];
  const end = performance.now() + 1000 * seconds;
  while (performance.now() < end) {
    times[0].push(await timed(() => model(x)));
    times[1].push(await timed(() => session.run(feeds)));
  }
  const [a, b] = times.map(median);
  console.log(`| ${name} | ${a.toFixed(0)} | ${b.toFixed(0)} | ${(b / a).toFixed(2)} | ${worst.toExponential(0)} |`);
}
process.exit(0);
