import { expect, test } from "vitest";
import { parseLabelledOutcomes } from "./labelled-outcomes.ts";

const SOUND =
  '{"id":"a","prompt":"Which tent?","language":"en","expect":"fill","categories":["hiking-gear"]}';

test("each line is a labelled prompt, and empty lines are skipped", () => {
  expect(parseLabelledOutcomes(`${SOUND}\n\n${SOUND}\n`)).toHaveLength(2);
});

test.each([
  ["not json", /^line 2: .*JSON/],
  [
    '{"id":"a","prompt":"p","categories":[],"expect":"no","language":"en"}',
    /^line 2: expect: Invalid option/,
  ],
  [SOUND.replace("{", '{"country":"us",'), /^line 2: country: must be two upper-case letters$/],
  [SOUND.replace("{", '{"age":200,'), /^line 2: age: /],
  [SOUND.replace("{", '{"topic":"x",'), /^line 2: Unrecognized key: "topic"$/],
])("%s is refused with its line and member", (line, message) => {
  expect(() => parseLabelledOutcomes(`${SOUND}\n${line}`)).toThrow(message);
});
