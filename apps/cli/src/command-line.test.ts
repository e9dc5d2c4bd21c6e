import { expect, test } from "vitest";
import { COMMAND_PATHS, renderHelp, runCommandLine } from "./command-line.ts";

/** The words that completion offers to the shell. */
async function completionsOf(...words: string[]): Promise<string[]> {
  const asked = await runCommandLine(["--get-yargs-completions", "adrelay", ...words, ""], () =>
    Promise.resolve(),
  );
  return asked.kind === "text" ? asked.text.split("\n") : [];
}

const GROUPS = ["dead", "queued", "replays", "discards", "provider", "publishers"];

test("the documentation lists every command", async () => {
  const paths: string[] = [];
  for (const word of await completionsOf()) {
    const inner = GROUPS.includes(word) ? await completionsOf(word) : [];
    paths.push(...(inner.length === 0 ? [word] : inner.map((command) => `${word} ${command}`)));
  }
  expect(COMMAND_PATHS.map((words) => words.join(" ")).sort()).toEqual(
    paths.filter((path) => path !== "completion").sort(),
  );
});

test("the help of a command names its own options", async () => {
  expect(await renderHelp(["dead", "discard"])).toContain("--reason");
  expect(await renderHelp(["replays", "show"])).toContain("--watch");
});
