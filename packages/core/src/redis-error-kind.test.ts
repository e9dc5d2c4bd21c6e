import { expect, test } from "vitest";
import { redisErrorKind } from "./redis-error-kind.ts";

test.each([
  ["READONLY You can't write against a read only replica.", "refuses_writes"],
  ["OOM command not allowed when used memory > 'maxmemory'.", "refuses_writes"],
  ["LOADING Redis is loading the dataset in memory", "refuses_writes"],
  // The error of a command that a script ran, in a server before version 7: first caught by the script, then not.
  ["@user_script: 42: -OOM command not allowed when used memory > 'maxmemory'.", "refuses_writes"],
  [
    "ERR Error running script (call to f_7c): @user_script:42: @user_script: 42: -READONLY You can't write",
    "refuses_writes",
  ],
  ["NOSCRIPT No matching script. Please use EVAL.", "no_script"],
  ["NOPERM this user has no permissions to run the 'eval' command", "no_permission"],
  ["ERR unknown command 'CONFIG', with args beginning with: 'GET'", "unknown_command"],
  [
    "ERR Error running script (call to f_7c): @user_script:42: attempt to index a nil value, OOM it isn't",
    "other",
  ],
  ["BUSYGROUP Consumer Group name already exists", "other"],
  ["NOAUTH Authentication required.", "other"],
  ["Connection is closed.", "other"],
] as const)("%s is classified as %s", (message, kind) => {
  expect(redisErrorKind(new Error(message))).toBe(kind);
});

test("a value that is no Error is classified as other", () => {
  expect(redisErrorKind("READONLY")).toBe("other");
});
