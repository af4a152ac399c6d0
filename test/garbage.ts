/** Collects garbage again and again, so that what nothing refers to is really gone. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export async function whileCollecting<T>(work: () => Promise<T>): Promise<T> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void; // V8's own function, which the flag has added
  const timer = setInterval(collect, 20);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
