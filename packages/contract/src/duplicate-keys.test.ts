import fc from "fast-check";
import { expect, test } from "vitest";
import { duplicateKeys, outermostKeys } from "./duplicate-keys.ts";

test("the keys of any object are found as JSON.parse sees them", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), (object) => {
      const json = JSON.stringify(object, null, 1);
      expect(outermostKeys(json)).toEqual(Object.keys(JSON.parse(json)));
    }),
  );
});

test.each([
  ['{"a":1,"b":{"a":2},"c":["a"]}', []],
  ['{"a":1,"a":2}', ["a"]],
  ['{"a":1,"\\u0061":2}', ["a"]],
  ['{"x":"\\"a\\":1, \\\\","a":"{","b":"}"}', []],
])("in %s the repeated names are %j", (json, expected) => {
  expect(duplicateKeys(json, ["a", "b"])).toEqual(expected);
});

test.each([
  ['{"a":1,"b":{"a":2,"c":3}}', []],
  ['{"b":{"a":1,"\\u0061":2}}', ["b.a"]],
  ['{"b":{"a":{"a":1},"c":[{"a":2},{"a":3}]},"c":{"a":1}}', []],
  ['{"b":[{"a":1,"a":2}],"c":{"b":{"a":1,"a":2}}}', []],
  ['{"b":{"x":[1],"a":1},"x":{},"b":{"a":2}}', ["b", "b.a"]],
  ['{"b":{"x":"{\\"a\\":","a":[],"y":{},"a":"}"}}', ["b.a"]],
])("in %s the repeated paths are %j", (json, expected) => {
  expect(duplicateKeys(json, ["a", "b", "b.a"])).toEqual(expected);
});
