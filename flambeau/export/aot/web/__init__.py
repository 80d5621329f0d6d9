"""What only WebAssembly modules have: loaders in JavaScript, shared memory, the pool that workers join."""
