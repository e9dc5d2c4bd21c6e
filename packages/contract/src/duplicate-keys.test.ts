import fc from "fast-check";
import { expect, test } from "vitest";
import { duplicateKeys, keyPaths } from "./acknowledgment.ts";

test("keyPaths finds the same keys as JSON.parse", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), (object) => {
      const json = JSON.stringify(object, null, 1);
      expect(keyPaths(json, 1)).toEqual(Object.keys(JSON.parse(json)));
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

test("repeated members are found however their names are escaped", () => {
  const name = fc.constantFrom("a", "b", "a/", '"a"', "a.b");
  const spelled = fc.constantFrom<(text: string) => string>(
    (text) => JSON.stringify(text),
    (text) => JSON.stringify(text).replaceAll("a", "\\u0061"),
    (text) => JSON.stringify(text).replaceAll("/", "\\/"),
  );
  const value = fc.constantFrom('"a"', '"\\"a"', '"\\"a\\":"', '["a"]', '{"a":"b"}');
  fc.assert(
    fc.property(fc.array(fc.tuple(name, spelled, value)), (members) => {
      const json = `{${members.map(([key, spell, member]) => `${spell(key)}:${member}`).join(",")}}`;
      const names = ["a", "b", "a/", '"a"', "a.b"];
      const repeated = names.filter((each) => members.filter(([key]) => key === each).length > 1);
      expect(duplicateKeys(json, ["a", "b"])).toEqual(repeated.filter((each) => /^[ab]$/.test(each)));
      expect(duplicateKeys(json, ["a", "a/", '"a"'])).toEqual(
        repeated.filter((each) => each.includes("a") && !each.includes(".")),
      );
    }),
  );
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
