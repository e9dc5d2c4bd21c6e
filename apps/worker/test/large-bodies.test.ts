/** Guards against small acknowledgments that wait because large ones of their publisher find no room in a real worker. */
import { publisherIdSchema } from "@adrelay/contract";
import { acknowledged, eventually, writePublishersFile } from "@adrelay/testkit";
import { expect, onTestFinished, test } from "vitest";
import { openWorkerFixture } from "./worker-fixture.ts";

/** Two of them don't fit into the smallest WORKER_PAYLOAD_BYTES. */
const LARGE = JSON.stringify({ llm_response: "x".repeat(700_000) });
const SMALL = JSON.stringify({ llm_response: "x" });

const open = () => openWorkerFixture((stop) => onTestFinished(async () => void (await stop())));

test("parked small acknowledgments are delivered while large ones before them find no room", async () => {
  const { provider, store, accept, find, startWorker } = await open();
  const isLarge = (post: { readonly body: Buffer }) => post.body.length > 100_000;
  // So slowly that most of the small ones find no slot, and are parked as well.
  const slowly = { kind: "late", delayMs: 300, answer: acknowledged() } as const;
  provider.onAcknowledge((post) => (isLarge(post) ? { kind: "hang" } : slowly));
  // Publishers that share an account don't get all slots, so one may hold more jobs than it has slots.
  const account = { providerUrl: provider.url, keyEnv: "PROVIDER_API_KEY" };
  const file = writePublishersFile(["alpha", "beta"].map((id) => ({ id, ...account })));
  onTestFinished(() => file.remove());
  await startWorker(4, {
    API_KEYS: "",
    PUBLISHERS_FILE: file.path,
    WORKER_PAYLOAD_BYTES: "1048576",
    DELIVERY_TIMEOUT_MS: "60000",
    SHUTDOWN_TIMEOUT_MS: "200",
  });
  const publisher = publisherIdSchema.parse("alpha");
  const acceptAll = (count: number, body: string) =>
    Promise.all(Array.from({ length: count }, () => accept({ publisher, body })));
  const large = await acceptAll(10, LARGE);
  await eventually(async () => expect(await store.queueDepths()).toMatchObject({ waiting: 0, active: 1 }));
  const small = await acceptAll(20, SMALL);
  await eventually(async () => {
    const states = await Promise.all(small.map(async (id) => (await find(id))?.state));
    expect(states.filter((state) => state !== "delivered")).toEqual([]);
  });
  expect(provider.posts.filter(isLarge)).toHaveLength(1);
  for (const id of large) {
    expect(await find(id)).toMatchObject({ state: "queued" });
  }
});
