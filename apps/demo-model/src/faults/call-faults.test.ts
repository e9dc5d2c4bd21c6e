import { expect, test } from "vitest";
import { parseFaultScript } from "./call-faults.ts";
import { SeenCalls } from "./seen-calls.ts";

const faultsOf = (header: string) => {
  const parsed = parseFaultScript(header);
  return parsed.kind === "ok"
    ? Object.assign({}, ...parsed.faults.map(({ faults }) => faults))
    : parsed.message;
};

test.each([
  ["", {}],
  ["status=429", { status: 429 }],
  ["reset-before-headers", { isResetBeforeHeaders: true }],
  ["slow-headers=250", { headersDelayMs: 250 }],
  ["refuse-enhanced=422", { enhancedStatus: 422 }],
  ["cut-after=3", { earlyEnd: { how: "cut", after: 3 } }],
  ["reset-after=0", { earlyEnd: { how: "reset", after: 0 } }],
  ["stall-after=3", { earlyEnd: { how: "stall", after: 3 } }],
  ["end-after=3", { earlyEnd: { how: "end", after: 3 } }],
  ["error-event-after=3", { earlyEnd: { how: "error_event", after: 3 } }],
  ["gzip, split=every-byte ,split=7", { isGzip: true, splitBytes: 7 }],
  ["no-done, usage-after-end", { lacksLast: true, usageAfterEnd: true }],
  ["events=200;size=40, delay=5", { filler: { events: 200, sizeChars: 40 }, delayMs: 5 }],
  ["events=3", { filler: { events: 3, sizeChars: 40 } }],
  ["events=3;mark=a-1", { filler: { events: 3, sizeChars: 40, mark: "a-1" } }],
])("the header %j is read", (header, faults) => {
  expect(faultsOf(header)).toEqual(faults);
});

test.each([
  "nonsense",
  "status",
  "status=200",
  "status=429;times=0",
  "status=429;by=header.x",
  "status=429;times=1;by=cookie.x",
  "status=429;when=now",
  "gzip=1",
  "cut-after=-1",
  "cut-after=x",
  "split=0",
  "events=100000;size=100000",
  "events=3;mark=a b",
  "slow-headers=600001",
  Array.from({ length: 21 }, () => "gzip").join(),
])("the header %j is refused with its name", (header) => {
  expect(faultsOf(header)).toContain("x-demo-fault");
});

const call = (body: object, headers = {}, path = "/v1/messages") => ({
  path,
  headers,
  body,
  bytes: Buffer.from(JSON.stringify(body)),
});

/** For each call: whether it has the fault. */
function dueFor(header: string, calls: readonly ReturnType<typeof call>[]): boolean[] {
  const seen = new SeenCalls();
  const parsed = parseFaultScript(header);
  return calls.map((one) => parsed.kind === "ok" && seen.faultsOf(one, parsed.faults).status !== undefined);
}

test("a fault for the first calls is counted by body, header or member", () => {
  const [a, b] = [call({ id: 1 }), call({ id: 2 })];
  expect(dueFor("status=500", [a, a, b])).toEqual([true, true, true]);
  expect(dueFor("status=500;times=1", [a, a, b, b])).toEqual([true, false, true, false]);
  expect(dueFor("status=500;times=2", [a, a, a])).toEqual([true, true, false]);
  const byHeader = [
    call({}, { "x-run": "1" }),
    call({ id: 1 }, { "x-run": "1" }),
    call({}, { "x-run": "2" }),
  ];
  expect(dueFor("status=500;times=1;by=header.X-Run", byHeader)).toEqual([true, false, true]);
  const byMember = [call({ a: { b: 1 } }), call({ a: { b: 1 }, c: 1 }), call({ a: { b: 2 } })];
  expect(dueFor("status=500;times=1;by=body.a.b", byMember)).toEqual([true, false, true]);
  expect(dueFor("status=500;times=1", [a, call({ id: 1 }, {}, "/v1/responses")])).toEqual([true, true]);
});

test("two faults of one call are counted apart", () => {
  const parsed = parseFaultScript("status=500;times=1, delay=7;times=2");
  const seen = new SeenCalls();
  const faults = [1, 2, 3].map(() => (parsed.kind === "ok" ? seen.faultsOf(call({}), parsed.faults) : {}));
  expect(faults).toEqual([{ status: 500, delayMs: 7 }, { delayMs: 7 }, {}]);
});
