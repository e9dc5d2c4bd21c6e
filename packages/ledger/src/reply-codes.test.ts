import { expect, test } from "vitest";
import { isRefusedForNow } from "./reply-codes.ts";

test.each([
  "READONLY You can't write against a read only replica.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "LOADING Redis is loading the dataset in memory",
  // As versions before 7 tell it of a script's command: caught, and not caught.
  "@user_script: 42: -OOM command not allowed when used memory > 'maxmemory'.",
  "ERR Error running script (call to f_7c): @user_script:42: @user_script: 42: -READONLY You can't write",
])("%s may be taken later", (message) => {
  expect(isRefusedForNow(new Error(message))).toBe(true);
});

test.each([
  "ERR Error running script (call to f_7c): @user_script:42: attempt to index a nil value, OOM it isn't",
  "BUSYGROUP Consumer Group name already exists",
  "NOAUTH Authentication required.",
  "Connection is closed.",
])("%s will not be taken by asking again", (message) => {
  expect(isRefusedForNow(new Error(message))).toBe(false);
});
