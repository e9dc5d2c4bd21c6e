/** A process with a file outbox, for tests that kill it: adds acknowledgments without end, and prints each stored id. */
import { randomUUID } from "node:crypto";
import { fileOutbox } from "../src/node/index.ts";

const [directory = "", removeShare = "0"] = process.argv.slice(2);
const outbox = fileOutbox({ directory, logBytesMax: 2000 });

async function addAndRemove(at: number): Promise<void> {
  const adResponseId = randomUUID();
  await outbox.add({ adResponseId, text: `text ${adResponseId}`, storedAtMs: 1 });
  process.stdout.write(`stored ${adResponseId}\n`);
  if (at % 10 < Number(removeShare) * 10) {
    process.stdout.write(`removed ${adResponseId}\n`);
    await outbox.remove(adResponseId);
  }
}

for (let at = 0; ; at += 4) {
  await Promise.all([at, at + 1, at + 2, at + 3].map(addAndRemove));
}
