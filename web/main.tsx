/** The page that `callgate serve` gives to a browser. */
import { render } from "preact";
import { App } from "./app.tsx";
import { start } from "./state.ts";

const place = document.querySelector("#app");
if (place !== null) render(<App />, place);
void start();
