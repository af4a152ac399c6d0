// Loaded before the command (node --require): counts what a run of it costs, whatever else the machine is busy with, and
// writes it down at the end, or before the first request to a model: built-in modules loaded, bytes of ours read, and bytes
// allocated (if there is room for them, so that nothing was collected).
const fs = require("node:fs");

const { dist, report } = JSON.parse(process.env.CALLGATE_GUARD);
const { readFileSync } = fs;
let bytes = 0;
fs.readFileSync = (path, ...rest) => {
  const read = readFileSync(path, ...rest);
  if (typeof path === "string" && path.startsWith(dist)) bytes += read.length;
  return read;
};
let told = false;
const tell = () => {
  if (told) return;
  told = true;
  const modules = process.moduleLoadList.filter((name) => name.startsWith("NativeModule ")).length;
  const allocated = process.memoryUsage().heapUsed - before;
  fs.writeFileSync(report, JSON.stringify({ bytes, modules, allocated }));
};
// A session has started when it asks its model; what it loads while it waits depends on the time.
require("node:diagnostics_channel").subscribe("http.client.request.start", tell);
process.on("exit", tell);
const before = process.memoryUsage().heapUsed;
