import fc from "fast-check";
import { expect, test } from "vitest";
import {
  AGE_MAX,
  isAgeTooHigh,
  isLongCountryCode,
  readAddress,
  readAge,
  readAsn,
  readGender,
  readName,
} from "./attributes.ts";

test.each([
  ["203.0.113.7", "203.0.113.7"],
  [" 203.0.113.7 ", "203.0.113.7"],
  ["203.0.113.7:51234", "203.0.113.7"],
  ["203.0.113.7, 10.0.0.1", "203.0.113.7"],
  ["203.0.113.7:51234,10.0.0.1", "203.0.113.7"],
  ["2001:db8::1", "2001:db8::1"],
  ["[2001:db8::1]", "2001:db8::1"],
  ["[2001:db8::1]:443", "2001:db8::1"],
  ['"[2001:db8::1]:443"', "2001:db8::1"],
  ["fe80::1%eth0", "fe80::1"],
  ["[fe80::1%25en0]:80", "fe80::1"],
  ["::ffff:203.0.113.7", "203.0.113.7"],
  ["[::FFFF:203.0.113.7]:80", "203.0.113.7"],
  ["0:0:0:0:0:ffff:203.0.113.7", "203.0.113.7"],
  [`203.0.113.7${", 10.0.0.1".repeat(1000)}`, "203.0.113.7"],
])("the address %j is read as %s", (written, address) => {
  expect(readAddress(written)).toBe(address);
});

test.each([
  "",
  " ",
  ",",
  "unknown",
  "unknown, 203.0.113.7",
  "nowhere",
  "203.0.113",
  "203.0.113.256",
  "203.0.113.7:port",
  "203.0.113.7/24",
  "[203.0.113.7",
  "2001:db8::1::2",
  "_hidden",
  "localhost",
  null,
  7,
  ["203.0.113.7"],
  {},
])("the address %j is unknown", (written) => {
  expect(readAddress(written)).toBeUndefined();
});

test.each([
  [34, 34],
  ["34", 34],
  [" 34 ", 34],
  ["034", 34],
  [1, 1],
  [AGE_MAX, AGE_MAX],
])("the age %j is read as %i", (sent, age) => {
  expect([readAge(sent), isAgeTooHigh(sent)]).toEqual([age, false]);
});

test.each([
  0,
  "0",
  -1,
  "-1",
  17.5,
  "17.5",
  "18+",
  "18-24",
  "0x12",
  "1e2",
  "٣٤",
  "",
  " ",
  "adult",
  true,
  null,
  [34],
  { age: 34 },
])("the age %j is unknown", (sent) => {
  expect([readAge(sent), isAgeTooHigh(sent)]).toEqual([undefined, false]);
});

test.each([121, 200, "200", 1990, 1e300, Number.POSITIVE_INFINITY])("nobody has the age %j", (sent) => {
  expect([readAge(sent), isAgeTooHigh(sent)]).toEqual([undefined, true]);
});

test("only a number in digits is ever read as the age of an adult", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const age = readAge(value);
      expect(age === undefined || Number(String(value).trim()) === age).toBe(true);
      expect(["number", "string"].includes(typeof value) || age === undefined).toBe(true);
    }),
  );
});

test.each([
  [64500, 64500],
  ["64500", 64500],
  ["AS64500", 64500],
  [" as 64500 ", 64500],
  ["4294967295", 4_294_967_295],
])("the network %j is read as %i", (sent, asn) => {
  expect(readAsn(sent)).toBe(asn);
});

test.each([0, -1, 1.5, 4_294_967_296, "AS", "ASN64500", "AS64500 Example", "1.10", "", null, true, []])(
  "the network %j is unknown",
  (sent) => {
    expect(readAsn(sent)).toBeUndefined();
  },
);

test.each([
  ["female", "female"],
  ["Female", "female"],
  [" MALE ", "male"],
  ["other", "other"],
  ["unknown", undefined],
  ["x", undefined],
  ["", undefined],
  [1, undefined],
  [null, undefined],
])("the gender %j is read as %s", (sent, gender) => {
  expect(readGender(sent)).toBe(gender);
});

test.each([
  ["São Paulo", "São Paulo"],
  ["Sa\u0303o  Paulo ", "São Paulo"],
  ["\tNew\u00a0York", "New York"],
  ["Unknown", undefined],
  [" ", undefined],
  ["a".repeat(1001), undefined],
  [7, undefined],
  [null, undefined],
])("the place %j is read as %j", (sent, name) => {
  expect(readName(sent)).toBe(name);
});

test.each([
  ["usa", true],
  [" GBR ", true],
  ["US", false],
  ["unk", false],
  ["Germany", false],
  ["", false],
  [840, false],
])("whether %j is a code of three letters: %j", (sent, isLong) => {
  expect(isLongCountryCode(sent)).toBe(isLong);
});
