import { expect, test } from "vitest";
import { COMMAND_PATHS, renderHelp, runCommandLine } from "./command-line.ts";

/** The words that the shell would be offered. */
async function completionsOf(...words: string[]): Promise<string[]> {
  const asked = await runCommandLine(["--get-yargs-completions", "adrelay", ...words, ""], () =>
    Promise.resolve(),
  );
  return asked.kind === "text" ? asked.text.split("\n") : [];
}

test("every command is in the documentation's list", async () => {
  const paths: string[] = [];
  for (const word of await completionsOf()) {
    const inner = word === "dead" || word === "replays" ? await completionsOf(word) : [];
    paths.push(...(inner.length === 0 ? [word] : inner.map((command) => `${word} ${command}`)));
  }
  expect(COMMAND_PATHS.map((words) => words.join(" ")).sort()).toEqual(
    paths.filter((path) => path !== "completion").sort(),
  );
});

test("each command's help names its own options", async () => {
  expect(await renderHelp(["dead", "discard"])).toContain("--reason");
  expect(await renderHelp(["replays", "show"])).toContain("--watch");
});
