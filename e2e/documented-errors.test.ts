/**
 * Each error that the API documents describe is made at a real process, or named here with the reason why none can be made. So no
 * caller has to treat an error that there isn't.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DocumentName, operationsOf } from "./documented-errors/documented.ts";
import { type ErrorStack, startErrorStack } from "./documented-errors/error-stack.ts";
import { Ways, WHILE_REDIS_IS_AWAY } from "./documented-errors/ways.ts";

/** Codes for which no request is known. */
const NOT_MADE: Readonly<Record<string, string>> = {
  internal_error: "only a fault of ours makes it",
};
/** Operations that answer as ever while Redis is away. `shutdown-delay.test.ts` makes their 503. */
const NEED_NO_REDIS: readonly string[] = ["getReadinessForInjections"];
const DOCUMENTS = ["public", "admin", "ad-server"] as const satisfies readonly DocumentName[];

let stack: ErrorStack;
let ways: Ways;

beforeAll(async () => {
  stack = await startErrorStack();
  ways = new Ways(stack);
});
afterAll(() => stack.stop());

const casesOf = (name: DocumentName) =>
  operationsOf(name).flatMap((operation) =>
    operation.errors.map((error) => ({ operation, error, code: error.split(" ")[1] ?? "" })),
  );

/** Makes each error, and returns those that came out otherwise. */
async function differences(cases: ReturnType<typeof casesOf>): Promise<string[]> {
  const found: string[] = [];
  for (const { operation, error, code } of cases) {
    const way = ways.wayTo(operation, code);
    const made = way === undefined ? "no way" : await way().catch(String);
    if (made !== error) {
      found.push(`${operation.id}: ${error} was ${made}`);
    }
  }
  return found;
}

/** They wait for a time limit of the server, so all are begun at once. */
const isSlow = ({ code }: { readonly code: string }) => code === "request_timeout";

test("each listener ends a request that doesn't go on, at the address of each operation", async () => {
  const slow = DOCUMENTS.flatMap(casesOf).filter(isSlow);
  expect(slow.length).toBeGreaterThan(30);
  const found = await Promise.all(slow.map((one) => differences([one])));
  expect(found.flat()).toEqual([]);
});

test.each(DOCUMENTS)("each error of the document %s is made", { timeout: 300_000 }, async (name) => {
  const cases = casesOf(name).filter(
    (one) => !(one.code in NOT_MADE) && !isSlow(one) && !WHILE_REDIS_IS_AWAY.includes(one.code),
  );
  expect(await differences(cases)).toEqual([]);
});

test("each error of an operation that needs Redis is made while Redis is away", async () => {
  await Promise.all([stack.redis.stop(), stack.adServerRedis.stop()]);
  const cases = DOCUMENTS.flatMap(casesOf).filter(
    ({ operation, code }) => WHILE_REDIS_IS_AWAY.includes(code) && !NEED_NO_REDIS.includes(operation.id),
  );
  expect(cases.length).toBeGreaterThan(15);
  expect(await differences(cases)).toEqual([]);
});
