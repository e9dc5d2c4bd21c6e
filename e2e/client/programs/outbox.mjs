/**
 * A backend with a file outbox: `outbox.mjs URL KEY DIRECTORY COUNT`. Prints each id once its acknowledgment is stored, then waits
 * to be killed. With a COUNT of 0 it only sends what an earlier one left, and ends.
 */
import process from "node:process";
import { createRelay } from "@adrelay/client";
import { fileOutbox } from "@adrelay/client/node";

const [url = "", apiKey = "", directory = "", count = "0"] = process.argv.slice(2);
const relay = createRelay({
  url,
  apiKey,
  outbox: fileOutbox({ directory }),
  retry: { firstMs: 100, maxMs: 500 },
  timeoutMs: 30_000,
  onEvent: (event) => console.log(JSON.stringify(event)),
});
const ads = await Promise.all(
  Array.from({ length: Number(count) }, (_none, at) =>
    relay.inject({ prompt: "Which shoes?", request_context: { session_id: `s-${at}` } }),
  ),
);
console.log(JSON.stringify({ kind: "all_injected" }));
if (count === "0") {
  // The end of standard input says when to end.
  process.stdin.resume();
  await new Promise((resolve) => process.stdin.once("end", resolve));
  console.log(JSON.stringify({ kind: "closed", left: await relay.close() }));
} else {
  // The next line on standard input says when to acknowledge.
  await new Promise((resolve) => process.stdin.once("data", resolve));
  await Promise.all(
    ads.map(async (ad, at) => {
      if (ad.kind === "injected") {
        const { kind } = await ad.acknowledge(`answer ${at}`);
        console.log(
          JSON.stringify({ kind: "stored", id: ad.adResponseId, text: `answer ${at}`, outcome: kind }),
        );
      }
    }),
  );
  process.stdin.resume();
}
