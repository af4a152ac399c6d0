import { createLocalDispatcher } from "../../src/serve/dispatcher.ts";
import { dispatcherLaws } from "./dispatcher.ts";

dispatcherLaws("in this process", async () => ({
  dispatcher: createLocalDispatcher({ places: 2, placesPerTenant: () => 1 }),
  close: async () => undefined,
}));
