import { expect, test } from "vitest";
import {
  formatTraceparent,
  jobTraceparentSchema,
  parseTraceContext,
  traceHeadersOf,
} from "./ids-and-paths.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

test("a traceparent is parsed and formatted unchanged", () => {
  const context = parseTraceContext(`00-${TRACE}-${SPAN}-01`, "vendor=1");
  expect(context).toEqual({ traceId: TRACE, spanId: SPAN, isSampled: true, state: "vendor=1" });
  expect(traceHeadersOf(context)).toEqual({ traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: "vendor=1" });
});

test("of a later version's traceparent the known fields are parsed", () => {
  const context = parseTraceContext(`cc-${TRACE}-${SPAN}-00-what-comes`);
  expect(context && formatTraceparent(context)).toBe(`00-${TRACE}-${SPAN}-00`);
});

test.each([
  undefined,
  "",
  "nonsense",
  `00-${TRACE}-${SPAN}`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01-more`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${"0".repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${"0".repeat(16)}-01`,
  `00-${TRACE}-${SPAN}-01\n`,
  `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
])("%j is not a traceparent, and no header is passed on", (header) => {
  expect(traceHeadersOf(parseTraceContext(header, "vendor=1"))).toEqual({});
});

test.each(["", "x".repeat(513), "a=b\u00e9"])("a tracestate like %j is dropped", (state) => {
  expect(parseTraceContext(`00-${TRACE}-${SPAN}-01`, state)).not.toHaveProperty("state");
});

test("an invalid traceparent in a job counts as absent", () => {
  expect(jobTraceparentSchema.parse("nonsense")).toBeUndefined();
  expect(jobTraceparentSchema.parse(7)).toBeUndefined();
});
