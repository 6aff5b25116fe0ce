'use strict';
// What takes longer than a frame is computed here, one call after the other, in the order in which they come.
/** @type {Promise<Finetti> | undefined} */
let ready;
onmessage = async event => {
  const { module, id, name, numbers, room } = event.data;
  if (module) {
    ready = WebAssembly.instantiate(/** @type {WebAssembly.Module} */ (module)).then(finettiOf);
    return;
  }
  try {
    const answers = (await ready).call(name, numbers, room);
    postMessage({ id, answers }, /** @type {any} */ ([answers.buffer]));
  } catch (error) {
    postMessage({ id, error: error.message });
  }
};
