import { expect, test } from "vitest";
import { parseLabelledOutcomes } from "./labelled-outcomes.ts";

const SOUND =
  '{"id":"a","prompt":"Which tent?","language":"en","expect":"fill","categories":["hiking-gear"]}';

test("each line is a labelled prompt, and empty lines are skipped", () => {
  expect(parseLabelledOutcomes(`${SOUND}\n\n${SOUND.replace('"a"', '"b"')}\n`)).toHaveLength(2);
});

test.each([
  ["not json", /^line 2: is no JSON object$/],
  [
    '{"id":"a","prompt":"p","categories":[],"expect":"no","language":"en"}',
    /^line 2: expect: must be fill or no_fill or reject$/,
  ],
  [SOUND.replace("{", '{"country":"us",'), /^line 2: country: must be two upper-case letters$/],
  [SOUND.replace("{", '{"age":200,'), /^line 2: age: must be at most 120$/],
  [
    SOUND.replace('"hiking-gear"', ""),
    /^line 2: categories: must name at least one category if expect is fill/,
  ],
  [SOUND.replace("fill", "reject"), /^line 2: categories: must name at least one .* none if it isn't$/],
  [SOUND.replace("{", '{"topic":"x",'), /^line 2: topic: is no member that is known here$/],
])("%s is refused with its line and member", (line, message) => {
  expect(() => parseLabelledOutcomes(`${SOUND}\n${line}`)).toThrow(message);
});

test("all faulty lines of a file are named, and what is wrong in each", () => {
  const lines = [SOUND, "not json", SOUND.replace('"hiking-gear"', '"tents", "kites"'), '{"id":"c"}'];
  expect(() => parseLabelledOutcomes(lines.join("\n"), new Set(["hiking-gear"]))).toThrow(
    new SyntaxError(
      [
        "line 2: is no JSON object",
        "line 3: id: is that of line 1 too",
        "line 3: categories: tents is no category of the catalogue",
        "line 3: categories: kites is no category of the catalogue",
        "line 4: prompt: is missing; language: is missing; expect: must be fill or no_fill or reject; categories: is missing",
      ].join("\n"),
    ),
  );
});

test.each(["", "\n \n"])("the file %j without a prompt is a fault", (text) => {
  expect(() => parseLabelledOutcomes(text)).toThrow(/^has no prompt$/);
});
