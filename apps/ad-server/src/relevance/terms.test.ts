import { expect, test } from "vitest";
import { TermReader } from "./terms.ts";

test.each([
  ["Crème brûlée", ["creme", "brulee"]],
  ["running shoes", ["run", "shoe"]],
  ["the and of", []],
  // This would take minutes if the time grew with the square of the length.
  [`tent${"\u0344".repeat(300_000)}`, ["tent"]],
])("the terms of %.20j are %j", (text, terms) => {
  expect(new TermReader().termsOf(text)).toEqual(terms);
});
