/** Runs the answers on an edge worker: its environment has what main.mjs has as arguments. */
import { runAnswers } from "./answers.mjs";

const handler = {
  /** @param {Request} _request @param {{ url: string, apiKey: string, count: string, breakEvery: string }} env */
  async fetch(_request, env) {
    const { url, apiKey, count, breakEvery } = env;
    return Response.json(
      await runAnswers({ url, apiKey }, { count: Number(count), breakEvery: Number(breakEvery) }),
    );
  },
};

// biome-ignore lint/style/noDefaultExport: workers are found by it
export default handler;
