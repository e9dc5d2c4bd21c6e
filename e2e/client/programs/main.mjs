/** Runs the answers on Node, Bun or Deno: `main.mjs URL KEY COUNT BREAK_EVERY`. Prints the result as JSON. */
import process from "node:process";
import { runAnswers } from "./answers.mjs";

const [url = "", apiKey = "", count, breakEvery] = process.argv.slice(2);
const result = await runAnswers({ url, apiKey }, { count: Number(count), breakEvery: Number(breakEvery) });
console.log(JSON.stringify(result));
