import { expect, test } from "vitest";
import { loadGatewayConfig } from "./config.ts";

const load = (env: Record<string, string>) =>
  loadGatewayConfig({ API_KEYS: "key-of-the-caller", PROVIDER_API_KEY: "k", ...env });

test("both settings together name the operators", () => {
  const loaded = load({ ADMIN_TOKEN: "one", ADMIN_TOKENS: "alice:two, bob:t:hree" });
  expect(loaded).toMatchObject({
    kind: "ok",
    config: {
      operators: [
        { name: "admin", token: "one" },
        { name: "alice", token: "two" },
        { name: "bob", token: "t:hree" },
      ],
    },
  });
});

test("without a token there is no operator", () => {
  expect(load({ ADMIN_TOKEN: "", ADMIN_TOKENS: " " })).toMatchObject({
    kind: "ok",
    config: { operators: [] },
  });
});

test.each([
  ["alice", "no token"],
  ["alice:", "an empty token"],
  [":token", "no name"],
  ["a b:token", "a name with a blank"],
  [`${"x".repeat(33)}:token`, "a long name"],
  ["alice:one,alice:two", "one name twice"],
  ["alice:one,bob:one", "one token twice"],
  ["admin:two", "the name of ADMIN_TOKEN"],
  ["alice:hunter2", "the token of ADMIN_TOKEN"],
])("the operators %s are refused for %s", (tokens) => {
  const loaded = load({ ADMIN_TOKEN: "hunter2", ADMIN_TOKENS: tokens });
  const faults = loaded.kind === "faulty" ? loaded.faults : [];
  expect(faults.map(({ path }) => path.split(".")[0])).toContain("ADMIN_TOKENS");
  expect(JSON.stringify(faults)).not.toContain("hunter2");
});
