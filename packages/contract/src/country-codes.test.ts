import { expect, test } from "vitest";
import { readCountry } from "./country-codes.ts";

const LETTERS = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
const PAIRS = LETTERS.flatMap((first) => LETTERS.map((second) => first + second));
/** What Unicode knows besides countries: islands without a code, groups of countries, and codes for tests. */
const NO_COUNTRIES = "AC CP CQ DG EA EU EZ IC QO TA UN XA XB ZZ".split(" ");

test("the known codes are those that Unicode knows as countries", () => {
  const names = new Intl.DisplayNames("en", { type: "region", fallback: "none" });
  const isCurrent = (code: string) =>
    names.of(code) !== undefined && new Intl.Locale(`und-${code}`).region === code;
  const known = PAIRS.filter((code) => isCurrent(code) && !NO_COUNTRIES.includes(code));
  expect(PAIRS.filter((code) => readCountry(code) === code)).toEqual(known);
  expect(known).toHaveLength(250);
});

test.each([
  ["US", "US"],
  ["us", "US"],
  [" Us\t", "US"],
  ["uk", "GB"],
  ["EL", "GR"],
  ["XK", "XK"],
])("%j is read as %s", (code, country) => {
  expect(readCountry(code)).toBe(country);
});

test.each([
  "",
  " ",
  "T1",
  "XX",
  "ZZ",
  "A1",
  "AP",
  "EU",
  "O1",
  "--",
  "U S",
  "USA",
  "Germany",
  "ß",
  49,
  null,
  ["US"],
])("%j is no country", (value) => {
  expect(readCountry(value)).toBeUndefined();
});
