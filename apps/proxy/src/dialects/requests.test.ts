/** What is read of a request's body: the user's text and its place, or why no ad may go in. */
import { DIALECTS, type DialectName } from "@adrelay/core";
import { describe, expect, test } from "vitest";
import type { BodyRules, BodySkipReason, ReadRequest } from "./dialect.ts";
import { dialectNamed, dialectOf, splice } from "./index.ts";

const ALLOW_ALL: BodyRules = { allowsCacheMarked: true, allowsStoredResponses: true };
const RULES: BodyRules = { allowsCacheMarked: false, allowsStoredResponses: true };

const USER = { role: "user", content: "Which bike?" };
const SYSTEM = { role: "system", content: "Be kind." };
const ASSISTANT = { role: "assistant", content: "A blue one." };
const MARK = { type: "ephemeral" };

const text = (written: unknown) => ({ type: "text", text: written });

type Json = Readonly<Record<string, unknown>>;

/** The member that has the items of a dialect. */
const LIST: Readonly<Record<DialectName, string>> = {
  chat_completions: "messages",
  messages: "messages",
  responses: "input",
};

function read(name: DialectName, body: unknown, rules = RULES): ReadRequest {
  return dialectNamed(name).readRequest(Buffer.from(JSON.stringify(body)), rules);
}

function bodyOf(name: DialectName, items: unknown, more: Json = {}): Json {
  return { model: "m", ...more, [LIST[name]]: items };
}

/** The items with the enhanced prompt in place. */
function spliced(name: DialectName, items: unknown): unknown {
  const body = Buffer.from(JSON.stringify(bodyOf(name, items)));
  const request = dialectNamed(name).readRequest(body, ALLOW_ALL);
  if (request.kind === "skip") return request.reason;
  return JSON.parse(splice(body, request.place, "AD").toString())[LIST[name]];
}

const CHAT_CALL = {
  role: "assistant",
  tool_calls: [
    { id: "c1", type: "function" },
    { id: "c2", type: "function" },
  ],
};
const chatResult = (id: unknown) => ({ role: "tool", tool_call_id: id, content: "12 C" });
const toolUse = (id: string) => ({ type: "tool_use", id, name: "n", input: {} });
const toolResult = (id: unknown) => ({
  type: "tool_result",
  tool_use_id: id,
  content: [{ type: "text", text: "12 C" }],
});
const output = (id: unknown, type = "function_call_output") => ({ type, call_id: id, output: "12 C" });

/** Items, what they are after an ad is put in (or the reason to skip), and the ids that are answered. */
type Case = readonly [what: string, items: unknown, result: unknown, answered?: readonly string[]];

const COMMON: readonly Case[] = [
  ["one message", [USER], [{ ...USER, content: "AD" }]],
  ["the last of several messages", [USER, ASSISTANT, USER], [USER, ASSISTANT, { ...USER, content: "AD" }]],
  ["instructions behind the message", [USER, SYSTEM], [{ ...USER, content: "AD" }, SYSTEM]],
  ["an assistant's message at the end", [USER, ASSISTANT], "prefill"],
  ["an assistant's message before instructions", [USER, ASSISTANT, SYSTEM], "prefill"],
  ["no message", [], "no_user_text"],
  ["instructions only", [SYSTEM], "no_user_text"],
  ["a blank text", [{ role: "user", content: " \n" }], "no_user_text"],
  ["a list without text", [USER, ASSISTANT, { role: "user", content: [{ type: "image" }] }], "no_user_text"],
  ["an empty list", [{ role: "user", content: [] }], "no_user_text"],
  ["a text that is a number", [{ role: "user", content: [{ type: "text", text: 7 }] }], "no_user_text"],
  ["content that is an object", [{ role: "user", content: { type: "text", text: "x" } }], "no_user_text"],
  ["content that is null", [{ role: "user", content: null }], "no_user_text"],
  ["items that are no objects", [1, "x", null, [USER]], "prefill"],
  ["an object in place of the list", { role: "user" }, "no_user_text"],
  [
    "a list of parts, of which the last text is taken",
    [
      {
        role: "user",
        content: [{ type: "text", text: "a" }, { text: "b", type: "text" }, { type: "image" }],
      },
    ],
    [
      {
        role: "user",
        content: [{ type: "text", text: "a" }, { text: "AD", type: "text" }, { type: "image" }],
      },
    ],
  ],
];

const CHAT: readonly Case[] = [
  ...COMMON,
  [
    "a developer behind the message",
    [USER, { role: "developer", content: "x" }],
    [
      { ...USER, content: "AD" },
      { role: "developer", content: "x" },
    ],
  ],
  [
    "results of tools",
    [USER, CHAT_CALL, chatResult("c1"), chatResult("c2")],
    [{ ...USER, content: "AD" }, CHAT_CALL, chatResult("c1"), chatResult("c2")],
    ["c2", "c1"],
  ],
  [
    "results of a second step",
    [USER, CHAT_CALL, chatResult("c1"), CHAT_CALL, chatResult("c9")],
    [{ ...USER, content: "AD" }, CHAT_CALL, chatResult("c1"), CHAT_CALL, chatResult("c9")],
    ["c9"],
  ],
  [
    "a new message behind results",
    [USER, CHAT_CALL, chatResult("c1"), USER],
    [USER, CHAT_CALL, chatResult("c1"), { ...USER, content: "AD" }],
  ],
  [
    "instructions among results",
    [USER, CHAT_CALL, chatResult("c1"), SYSTEM, chatResult("c2"), SYSTEM],
    [{ ...USER, content: "AD" }, CHAT_CALL, chatResult("c1"), SYSTEM, chatResult("c2"), SYSTEM],
    ["c2", "c1"],
  ],
  ["a result without an id", [USER, CHAT_CALL, { role: "tool", content: "x" }], "unknown_step"],
  [
    "a function's result of the older form",
    [USER, { role: "function", name: "f", content: "x" }],
    "unknown_step",
  ],
  ["a result whose id is a number", [USER, CHAT_CALL, chatResult(3)], "unknown_step"],
  ["results without a user's text", [CHAT_CALL, chatResult("c1")], "no_user_text"],
];

const PAUSED = {
  role: "assistant",
  content: [
    { type: "text", text: "x" },
    { type: "server_tool_use", id: "s1" },
    { type: "mcp_tool_use", id: "p1" },
  ],
};
const RESULTS = {
  role: "user",
  content: [toolResult("t1"), toolResult("t2"), { type: "text", text: "Go on." }],
};

const MESSAGES: readonly Case[] = [
  ...COMMON,
  [
    "results of tools",
    [USER, { role: "assistant", content: [toolUse("t1")] }, { role: "user", content: [toolResult("t1")] }],
    [
      { ...USER, content: "AD" },
      { role: "assistant", content: [toolUse("t1")] },
      { role: "user", content: [toolResult("t1")] },
    ],
    ["t1"],
  ],
  [
    "a text beside results, which isn't a new message",
    [USER, { role: "assistant", content: [toolUse("t1")] }, RESULTS],
    [{ ...USER, content: "AD" }, { role: "assistant", content: [toolUse("t1")] }, RESULTS],
    ["t1", "t2"],
  ],
  ["a result without an id", [USER, { role: "user", content: [{ type: "tool_result" }] }], "unknown_step"],
  ["a paused step that goes on", [USER, PAUSED], [{ ...USER, content: "AD" }, PAUSED], ["s1", "p1"]],
  ["results without a user's text", [{ role: "user", content: [toolResult("t1")] }], "no_user_text"],
];

const CALL = { type: "function_call", call_id: "f1", name: "n", arguments: "{}" };
const APPROVAL = { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true };
const INPUT_TEXT = { type: "input_text", text: "a" };

const RESPONSES: readonly Case[] = [
  ...COMMON,
  ["an input that is a text", "Which bike?", "AD"],
  ["an input that is blank", " ", "no_user_text"],
  ["an input that is a number", 7, "no_user_text"],
  [
    "an item of the type message",
    [{ type: "message", role: "user", content: [INPUT_TEXT] }],
    [{ type: "message", role: "user", content: [{ type: "input_text", text: "AD" }] }],
  ],
  [
    "results of tools",
    [USER, { type: "reasoning" }, CALL, output("f1"), output("f2", "custom_tool_call_output")],
    [
      { ...USER, content: "AD" },
      { type: "reasoning" },
      CALL,
      output("f1"),
      output("f2", "custom_tool_call_output"),
    ],
    ["f2", "f1"],
  ],
  [
    "results of a shell, a computer and a patch",
    [
      USER,
      output("a", "shell_call_output"),
      output("b", "computer_call_output"),
      output("c", "apply_patch_call_output"),
    ],
    [
      { ...USER, content: "AD" },
      output("a", "shell_call_output"),
      output("b", "computer_call_output"),
      output("c", "apply_patch_call_output"),
    ],
    ["c", "b", "a"],
  ],
  [
    "an answer to a request for approval",
    [USER, { type: "mcp_approval_request" }, APPROVAL],
    [{ ...USER, content: "AD" }, { type: "mcp_approval_request" }, APPROVAL],
    ["mcpr_1"],
  ],
  ["a call without its result at the end", [USER, CALL], "prefill"],
  ["reasoning at the end", [USER, { type: "reasoning" }], "prefill"],
  ["a result without an id", [USER, output(undefined)], "unknown_step"],
  [
    "a reference to the provider's item at the end",
    [USER, { type: "item_reference", id: "msg_1" }],
    "provider_state",
  ],
  [
    "references before the message",
    [{ type: "item_reference", id: "msg_1" }, USER],
    [
      { type: "item_reference", id: "msg_1" },
      { ...USER, content: "AD" },
    ],
  ],
];

const CASES = { chat_completions: CHAT, messages: MESSAGES, responses: RESPONSES };

describe.each(DIALECTS)("items of %s", (name) => {
  test.each(CASES[name])(
    "an ad goes into the right text, or none: %s",
    (_what, items, result, answered = []) => {
      expect(spliced(name, items)).toEqual(result);
      const request = read(name, bodyOf(name, items), ALLOW_ALL);
      if (request.kind === "ad_may_go_in") {
        expect(request.answeredCallIds).toEqual(answered);
        expect(request.userText).not.toBe("AD");
      }
    },
  );
});

const FORMAT = { type: "json_schema", schema: {} };
const TEXT_FORMAT = { type: "text" };

/** Members of a body, and why they forbid an ad (undefined: they don't). */
type Rule = readonly [members: Json, reason: BodySkipReason | undefined];

const TOOL_CHOICES: readonly Rule[] = [
  [{ tool_choice: "auto" }, undefined],
  [{ tool_choice: "none" }, undefined],
  [{ tool_choice: null }, undefined],
  [{ tool_choice: "required" }, "forced_tool"],
  [{ tool_choice: { type: "function", function: { name: "f" } } }, "forced_tool"],
  [{ tool_choice: { type: "custom", name: "f" } }, "forced_tool"],
  [{ tool_choice: { type: "auto" } }, undefined],
  [{ cache_control: MARK }, "cache_marked"],
  [{ cache_control: null }, undefined],
  [{ tools: [{ name: "t", cache_control: MARK }] }, undefined],
  [{ surprise: { n: 2, store: true }, metadata: { audio: "x" } }, undefined],
];

const OPENAI: readonly Rule[] = [
  ...TOOL_CHOICES,
  [{ tool_choice: { type: "allowed_tools", mode: "auto" } }, undefined],
  [{ tool_choice: { type: "allowed_tools", mode: "required" } }, "forced_tool"],
  [{ modalities: ["text"] }, undefined],
  [{ modalities: ["text", "audio"] }, "audio"],
  [{ audio: { voice: "alloy" } }, "audio"],
];

const MEMBERS: Readonly<Record<DialectName, readonly Rule[]>> = {
  chat_completions: [
    ...OPENAI,
    [{ n: 1 }, undefined],
    [{ n: null }, undefined],
    [{ n: 2 }, "choices"],
    [{ n: "2" }, "choices"],
    [{ n: {} }, "choices"],
    [{ response_format: TEXT_FORMAT }, undefined],
    [{ response_format: FORMAT }, "structured_output"],
    [{ response_format: { type: "json_object" } }, "structured_output"],
    [{ response_format: "json" }, "structured_output"],
    [{ tool_choice: { type: "allowed_tools", allowed_tools: { mode: "required" } } }, "forced_tool"],
    [{ function_call: "auto" }, undefined],
    [{ function_call: { name: "f" } }, "forced_tool"],
    [{ store: true, stream: true, stream_options: { include_usage: true } }, undefined],
  ],
  messages: [
    ...TOOL_CHOICES,
    [{ tool_choice: { type: "any" } }, "forced_tool"],
    [{ tool_choice: { type: "tool", name: "f" } }, "forced_tool"],
    [{ output_config: { effort: "low" } }, undefined],
    [{ output_config: { format: TEXT_FORMAT } }, undefined],
    [{ output_config: { format: FORMAT } }, "structured_output"],
    [{ output_format: FORMAT }, "structured_output"],
    [{ system: [{ type: "text", text: "x", cache_control: MARK }] }, undefined],
  ],
  responses: [
    ...OPENAI,
    [{ text: { verbosity: "low" } }, undefined],
    [{ text: { format: TEXT_FORMAT } }, undefined],
    [{ text: { format: FORMAT } }, "structured_output"],
    [{ background: true }, "background"],
    [{ background: false }, undefined],
    [{ previous_response_id: "resp_1" }, "provider_state"],
    [{ previous_response_id: null, conversation: null }, undefined],
    [{ conversation: "conv_1" }, "provider_state"],
    [{ conversation: { id: "conv_1" } }, "provider_state"],
    [{ store: true }, undefined],
  ],
};

describe.each(DIALECTS)("members of %s", (name) => {
  test.each(MEMBERS[name])("%j is skipped as %s", (members, reason) => {
    const request = read(name, bodyOf(name, [USER], members));
    expect(request.kind === "skip" ? request.reason : undefined).toBe(reason);
  });

  test.each([
    ["the message itself", [{ ...USER, cache_control: MARK }], "cache_marked"],
    [
      "its part",
      [{ role: "user", content: [{ type: "text", text: "x", cache_control: MARK }] }],
      "cache_marked",
    ],
    [
      "another part of it",
      [
        {
          role: "user",
          content: [
            { type: "image", prompt_cache_breakpoint: { mode: "explicit" } },
            { type: "text", text: "x" },
          ],
        },
      ],
      "cache_marked",
    ],
    [
      "an item behind it",
      [USER, { ...SYSTEM, content: [{ type: "text", text: "x", cache_control: MARK }] }],
      "cache_marked",
    ],
    [
      "an item before it",
      [{ ...SYSTEM, content: [{ type: "text", text: "x", cache_control: MARK }] }, USER],
      undefined,
    ],
    [
      "an older message",
      [{ role: "user", content: [{ type: "text", text: "x", cache_control: MARK }] }, ASSISTANT, USER],
      undefined,
    ],
    [
      "nothing, because it is null",
      [{ role: "user", content: [{ type: "text", text: "x", cache_control: null }] }],
      undefined,
    ],
  ])("a cache marker on %s is told", (_what, items, reason) => {
    const request = read(name, bodyOf(name, items));
    expect(request.kind === "skip" ? request.reason : undefined).toBe(reason);
    expect(read(name, bodyOf(name, items), ALLOW_ALL).kind).toBe("ad_may_go_in");
    expect(read(name, bodyOf(name, items, { cache_control: MARK }), ALLOW_ALL).kind).toBe("ad_may_go_in");
  });

  test.each([
    ["", "not_json"],
    ["{", "not_json"],
    ['{"a":1}}', "not_json"],
    ["nonsense", "not_json"],
    ["[]", "no_user_text"],
    ['"text"', "no_user_text"],
    ["null", "no_user_text"],
    ["{}", "no_user_text"],
    [`${"[".repeat(600)}${"]".repeat(600)}`, "too_large"],
    [`[${"0,".repeat(200_001)}0]`, "too_large"],
    ['{"messages":[{"role":"user","content":"\\x"}],"input":"\\x"}', "no_user_text"],
  ])("a body that isn't a request is skipped", (body, reason) => {
    expect(dialectNamed(name).readRequest(Buffer.from(body), RULES)).toEqual({ kind: "skip", reason });
  });

  test("a body that isn't UTF-8 is skipped", () => {
    const body = Buffer.from(JSON.stringify(bodyOf(name, [{ role: "user", content: "\u00ff" }])), "latin1");
    expect(dialectNamed(name).readRequest(body, RULES)).toEqual({ kind: "skip", reason: "not_json" });
  });

  test("of a member that comes twice the last one counts", () => {
    const list = LIST[name];
    const body = `{"${list}":[{"role":"user","content":"first"}],"${list}":[{"role":"assistant","role":"user","content":1,"c\\u006fntent":"last"}]}`;
    const request = dialectNamed(name).readRequest(Buffer.from(body), RULES);
    expect(request).toMatchObject({ kind: "ad_may_go_in", userText: "last" });
  });
});

test.each([
  ["one text", "a", "a"],
  ["texts and an image", [text("a"), { type: "image" }, text("b")], "a\n\nb"],
  [
    "texts of which some are blank or none",
    [text(" "), text(7), { type: "text" }, text("a"), text("b")],
    "a\n\nb",
  ],
  ["one text behind another message's", [text("b")], "b"],
])("an ad is asked for all texts of the last message: %s", (_what, content, messageText) => {
  const items = [
    { role: "user", content: [text("older")] },
    { role: "user", content },
  ];
  expect(read("messages", bodyOf("messages", items))).toMatchObject({ kind: "ad_may_go_in", messageText });
});

test.each([
  ["responses", {}, "stored_response"],
  ["responses", { store: null }, "stored_response"],
  ["responses", { store: true }, "stored_response"],
  ["responses", { store: false }, undefined],
  ["chat_completions", {}, undefined],
  ["chat_completions", { store: true }, "stored_response"],
] as const)("%s with %j is skipped as %s if the publisher wants nothing stored", (name, members, reason) => {
  const request = read(name, bodyOf(name, [USER], members), { ...RULES, allowsStoredResponses: false });
  expect(request.kind === "skip" ? request.reason : undefined).toBe(reason);
});

test("each path of a surface has its dialect, and no other path has one", () => {
  expect(dialectOf("/v1/chat/completions")?.name).toBe("chat_completions");
  expect(dialectOf("/v1/messages")?.name).toBe("messages");
  expect(dialectOf("/v1/responses")?.name).toBe("responses");
  for (const path of [
    "/v1/messages/count_tokens",
    "/v1/responses/resp_1",
    "/v1/models",
    "/",
    "/v1/messages/",
  ]) {
    expect(dialectOf(path)).toBeUndefined();
  }
});

test.each([
  [401, "invalid_request_error", "authentication_error"],
  [413, "invalid_request_error", "request_too_large"],
  [501, "server_error", "api_error"],
  [502, "server_error", "api_error"],
  [503, "server_error", "overloaded_error"],
  [504, "server_error", "timeout_error"],
] as const)("an error %d has the form of its dialect", (status, openAiType, anthropicType) => {
  const error = { status, code: "some_code", message: "It failed." };
  for (const name of ["chat_completions", "responses"] as const) {
    expect(JSON.parse(dialectNamed(name).formatError(error))).toEqual({
      error: { message: "It failed.", type: openAiType, param: null, code: "some_code" },
    });
  }
  expect(JSON.parse(dialectNamed("messages").formatError({ ...error, requestId: "req_1" }))).toEqual({
    type: "error",
    error: { type: anthropicType, message: "It failed." },
    request_id: "req_1",
  });
});
