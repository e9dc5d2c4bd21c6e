import { expect, test } from "vitest";
import { explainRedisError, redisErrorKind, redisErrorWord } from "./redis-error-kind.ts";

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
  ["MOVED 8123 10.0.0.7:6379", "refuses_writes"],
  ["TRYAGAIN Multiple keys request during rehashing of slot", "refuses_writes"],
  ["CLUSTERDOWN Hash slot not served", "refuses_writes"],
  ["NOSCRIPT No matching script. Please use EVAL.", "no_script"],
  ["NOPERM this user has no permissions to run the 'eval' command", "no_permission"],
  ["NOPERM User relay has no permissions to run the 'hset' command", "no_permission"],
  ["The user executing the script can't run this command or subcommand", "no_permission"],
  ["ERR ACL failure in script: User relay has no permissions to run the 'hset' command", "no_permission"],
  ["Unknown Redis command called from Lua script", "unknown_command"],
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

test.each([
  ["READONLY You can't write against a read only replica.", "READONLY", "primary"],
  ["@user_script: 42: -OOM command not allowed when used memory > 'maxmemory'.", "OOM", "maxmemory"],
  ["MOVED 8123 10.0.0.7:6379", "MOVED", "another|doesn't hold"],
  ["TRYAGAIN Multiple keys request during rehashing of slot", "TRYAGAIN", "wait"],
  ["NOPERM User relay has no permissions to run the 'hset' command", "NOPERM", "hset.*docs/operations.md"],
  ["The user executing the script can't run this command or subcommand", "NOPERM", "docs/operations.md"],
  ["ERR max number of clients reached", "ERR", "maxclients"],
  ["ERR DB index is out of range", "ERR", "database of REDIS_URL"],
  ["WRONGPASS invalid username-password pair or user is disabled.", "WRONGPASS", "password"],
] as const)("%s gets advice", (message, word, advice) => {
  expect(redisErrorWord(new Error(message))).toBe(word);
  expect(explainRedisError(new Error(message))).toMatch(new RegExp(advice));
});

test.each([
  "ERR wrong number of arguments for 'get' command",
  "Connection is closed.",
  "connect ECONNREFUSED",
])("%s gets no advice", (message) => {
  expect(explainRedisError(new Error(message))).toBeUndefined();
});
