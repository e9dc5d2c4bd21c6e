import { expect, test } from "vitest";
import { acceptedFormat } from "./accepted-format.ts";

const OPEN = "application/openmetrics-text";

test.each([
  ["", "text"],
  ["*/*", "text"],
  ["text/*", "text"],
  ["application/json", "text"],
  [OPEN, "open_metrics"],
  [`${OPEN}; version=1.0.0; charset=utf-8`, "open_metrics"],
  [`${OPEN}, text/plain`, "open_metrics"],
  [`${OPEN};q=0.5,text/plain;q=0.3`, "open_metrics"],
  [`${OPEN};q=0.3,text/plain;q=0.5`, "text"],
  [`text/plain;version=0.0.4;q=1,${OPEN};version=1.0.0;q=0.999`, "text"],
  [`${OPEN};q=0`, "text"],
  [`${OPEN};q=0.000, */*`, "text"],
  [`${OPEN};Q=0, text/plain;q=0`, "text"],
  ["text/plain;q=0, */*;q=0.1", "open_metrics"],
  [`text/plain;q=0, ${OPEN};q=0.1`, "open_metrics"],
  ["application/*, text/*;q=0.9", "open_metrics"],
  [`text/plain, ${OPEN} ; q = 0.2`, "text"],
  ["Application/OpenMetrics-Text;Q=.9, text/plain;q=.8", "open_metrics"],
  [
    `${OPEN};version=1.0.0;escaping=allow-utf-8;q=0.6,${OPEN};version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.1`,
    "open_metrics",
  ],
  ["not a media range;;q=x", "text"],
] as const)("a scraper that accepts %j gets %s", (accept, format) => {
  expect(acceptedFormat(accept)).toBe(format);
});
