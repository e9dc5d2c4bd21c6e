import { parseEnv } from "node:util";
import { expect, test } from "vitest";
import { envFileFaults } from "./env-file.ts";

/** The rules of docker compose for what is accepted here: an unquoted value ends at ` #`, quotes are removed. */
function asComposeReadsIt(text: string): Record<string, string> {
  const values: Record<string, string> = {};
  for (const line of text.split(/\r?\n/).filter((one) => !/^\s*(#.*)?$/.test(one))) {
    const [, name = "", value = ""] = /^\s*(?:export\s+)?(\w+)\s*=\s*(.*)$/.exec(line) ?? [];
    const quoted = /^(['"])(.*?)\1/.exec(value);
    values[name] = quoted === null ? (value.split(" #")[0] ?? "").trimEnd() : (quoted[2] ?? "");
  }
  return values;
}

test.each([
  "A=b",
  "A=b # a comment",
  "A=b \nB=c",
  "A=\nB=c",
  "# A=b\n\n  B = c",
  "export A=b",
  "A='b#c'",
  "A='b $c' # a comment",
  "A='it \"is\"'",
  'A="b#c"',
  'A="it\'s # b" # a comment',
  "A=b\r\nB='c#d'\r\n",
  "A=b\\c",
  "A=redis://:p%25@127.0.0.1:6379/0",
  "A=it's",
  'A=a,"b"',
])("%j has the same meaning in node and in docker compose", (text) => {
  expect(envFileFaults(text)).toEqual([]);
  expect({ ...parseEnv(text) }).toEqual(asComposeReadsIt(text));
});

test.each([
  ["\uFEFFA=b", "line 1", /byte order mark/],
  ["A=b\nAPI_KEYS=sesame#1", "line 2, API_KEYS", /#/],
  ["A=#sesame", "line 1, A", /#/],
  ["A= # no value", "line 1, A", /#/],
  ["A=  \nB=sesame", "line 1, A", /next line/],
  ["A=\t\r\nB=sesame", "line 1, A", /next line/],
  ["A=sesame\t# a comment", "line 1, A", /#/],
  ["A=pa$sesame", "line 1, A", /\$/],
  ['A="pa$sesame"', "line 1, A", /\$/],
  ['A="sesame\\n"', "line 1, A", /backslashes/],
  ["A='sesame\\'", "line 1, A", /quotes/],
  ["A='sesame", "line 1, A", /quotes/],
  ['A="sesame"more', "line 1, A", /quotes/],
  ["A=`sesame`", "line 1, A", /backquotes/],
  ["A='two\nlines'", "line 1, A", /one line/],
  ["A: sesame", "line 1", /NAME=value/],
  ["sesame", "line 1", /NAME=value/],
])("%j is refused by its line and name, without its value", (text, path, message) => {
  const [fault] = envFileFaults(text);
  expect(fault).toEqual({ path, message: expect.stringMatching(message) });
  expect(JSON.stringify(fault)).not.toContain("sesame");
});
