/**
 * Regular expressions that read the texts of others take a time that is linear in the length of the text, or the text is short. scslre
 * finds those that match a part in several ways, and those that begin anew within a part.
 */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseSync, Visitor } from "oxc-parser";
import { analyse } from "scslre";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const SOURCES = [
  "packages/{verdict,core,client,contract}/src/**/*.ts",
  "apps/{ad-server,proxy}/src/**/*.ts",
] as const;

/** Expressions that are known to be slow for some texts, by their files, and why that does no harm. */
const KNOWN_SLOW: Readonly<Record<string, string>> = {
  "packages/verdict/src/any-case.ts": "reads our own patterns and the names of products",
  "packages/verdict/src/code-spans.ts": "is tried at one place, and always matches there at once",
  "packages/verdict/src/style-sheet.ts": "has a bound of 500 characters",
  "packages/verdict/src/visible-text.ts": "has a bound of 20 characters",
  "packages/client/src/options.ts": "reads the program's own option",
  "packages/contract/src/ids-and-paths.ts": "reads an operator's setting",
  "apps/ad-server/src/faults/fault-rules.ts": "reads an operator's setting",
};

/** Bounds from here on count as none: with two ways for each, 30 repetitions already take for ever. */
const BOUND_MIN = 10;
/** An escape, a set, or a quantifier with two bounds. */
const TOKEN = /\\.|\[(?:\\.|[^\]\\])*\]|\{(\d+),(\d+)\}/gsu;

function withoutBounds(source: string): string {
  return source.replace(TOKEN, (token, least?: string, most?: string) =>
    Number(most) >= BOUND_MIN ? (least === "0" ? "*" : "+") : token,
  );
}

function isSlow({ source, flags }: RegExp): boolean {
  return [source, withoutBounds(source)].some(
    (written) => analyse(new RegExp(written, flags)).reports.length > 0,
  );
}

/** The literals of a file. */
function literalsOf(file: string): RegExp[] {
  const literals: RegExp[] = [];
  const visitor = new Visitor({
    Literal: (node) => {
      if ("regex" in node) {
        literals.push(new RegExp(node.regex.pattern, node.regex.flags));
      }
    },
  });
  visitor.visit(parseSync(file, readFileSync(`${root}${file}`, "utf8")).program);
  return literals;
}

const files = globSync([...SOURCES], { cwd: root, exclude: ["**/*.test.ts"] }).sort();

test("no regular expression takes more than linear time, except the known ones", () => {
  const slow = files.flatMap((file) =>
    literalsOf(file)
      .filter(isSlow)
      .map(() => file),
  );
  expect(slow.toSorted()).toEqual(Object.keys(KNOWN_SLOW).toSorted());
});

/** The expressions that our sources make with `new RegExp` meanwhile, with their files. */
async function madeDuring(work: () => Promise<unknown>): Promise<ReadonlyMap<string, RegExp>> {
  const made = new Map<string, RegExp>();
  const Original = globalThis.RegExp;
  globalThis.RegExp = new Proxy(Original, {
    construct: (target, parameters: [string, string?]) => {
      const expression = new target(...parameters);
      const [, , maker = ""] = (new Error().stack ?? "").split("\n");
      const [, file] = /((?:packages|apps)\/[\w-]+\/src\/[\w/.-]+\.ts)/.exec(maker) ?? [];
      if (file !== undefined) {
        made.set(`${file} ${expression}`, expression);
      }
      return expression;
    },
  });
  try {
    await work();
  } finally {
    globalThis.RegExp = Original;
  }
  return made;
}

test("no regular expression that is made of parts takes more than linear time", async () => {
  const made = await madeDuring(async () => {
    const [{ judgeAnswer }, { loadShippedPhrases }] = await Promise.all([
      import("../packages/verdict/src/judge-answer.ts"),
      import("../apps/ad-server/src/injection/sensitive-phrases.ts"),
      import("../apps/ad-server/src/injection/unread-sentences.ts"),
      import("../apps/ad-server/src/relevance/keyword-terms.ts"),
    ]);
    const landingUrl = "https://stridewell.example/tempo";
    judgeAnswer("```a\n", { productName: "Stridewell Tempo 3", advertiser: "stridewell", landingUrl });
    loadShippedPhrases();
  });
  expect(made.size).toBeGreaterThan(30);
  expect([...made].filter(([, expression]) => isSlow(expression)).map(([name]) => name)).toEqual([]);
});

test.each([
  [/^(?:[\w-]{1,40}:[^\n]{0,1000}\n|[ \t]+[^\n]{1,1000}\n|[ \t]*-[ \t][^\n]{1,1000}\n){1,100}---/, true],
  [
    /^(?:[\w-]{1,40}:[^\n]{0,1000}\n|[ \t]+(?:[^ \t\n][^\n]{0,1000})?\n|-[ \t][^\n]{1,1000}\n){1,100}---/,
    false,
  ],
  [/^0*\.?0*(?:px|em)?$/, true],
  [/^0*(?:\.0*)?(?:px|em)?$/, false],
  [/[.,;]+$/, true],
  [/(?<![.,;])[.,;]+$/, false],
])("%s is slow: %s", (expression, expected) => {
  expect(isSlow(expression)).toBe(expected);
});
