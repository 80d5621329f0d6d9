// Times models of a folder beside onnxruntime-web, in Node or in a page: see shipping_web.py.

// Of elapsed times the shortest counts: others may use the machine.
const shortest = (values) => values.reduce((a, b) => Math.min(a, b));
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

// Milliseconds before a turn, and of a turn.
const PAUSE = 20;
const TURN = 50;

/**
 * Time all models.
 * @param ort onnxruntime-web, set up for so many threads
 * @param models name -> shape of the example
 * @param options { seconds, threads, fetchBytes, importLoader, processorTime }; processorTime: microseconds, if it can be
 *   read and is what counts
 * @param print is given the rows of the table
 */
export async function timeModels(ort, models, { seconds, threads, fetchBytes, importLoader, processorTime }, print) {
  const now = processorTime ?? (() => 1000 * performance.now());
  const statistic = processorTime ? median : shortest;
  // The times of a turn. Threads that spin for a while after a call would slow down whoever comes next.
  async function turn(call) {
    if (processorTime) {
      const start = now();
      for (let i = 0; i < 3; i += 1) await call();
      return [(now() - start) / 3];
    }
    await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
    const times = [];
    const end = performance.now() + TURN;
    do {
      const start = now();
      await call();
      times.push(now() - start);
    } while (performance.now() < end);
    return times;
  }
  for (const [name, shape] of Object.entries(models)) {
    const { load } = await importLoader(name);
    const numbers = threads > 1 ? [1, threads] : [1];
    const loaded = [];
    for (const number of numbers) loaded.push(await load(undefined, { threads: number }));
    const x = Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => Math.sin(i));
    const session = await ort.InferenceSession.create(await fetchBytes(`${name}.onnx`), { executionProviders: ["wasm"] });
    const feeds = { [session.inputNames[0]]: new ort.Tensor("float32", x, shape) };
    const theirs = (await session.run(feeds))[session.outputNames[0]].data;
    const calls = [...loaded.map((model) => () => model(x)), () => session.run(feeds)];
    const worst = loaded[loaded.length - 1](x).reduce((most, each, i) => Math.max(most, Math.abs(each - theirs[i])), 0);
    const times = calls.map(() => []);
    const end = performance.now() + 1000 * seconds;
    while (performance.now() < end) {
      for (const [i, call] of calls.entries()) times[i].push(...await turn(call));
    }
    const found = times.map(statistic);
    const [ours, others] = found.slice(-2);
    const cells = [name, ...found.map((each) => each.toFixed(0)), (others / ours).toFixed(2), worst.toExponential(0)];
    print(`| ${cells.join(" | ")} |`);
    loaded.forEach((model) => model.close?.());
    await session.release();
  }
}
