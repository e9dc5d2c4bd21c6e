/** The providers' own clients understand the demo model. */
import { type DemoModel, startDemoModel } from "@adrelay/testkit";
import { Anthropic } from "@anthropic-ai/sdk";
import { OpenAI } from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";

let model: DemoModel;
let openAi: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  model = await startDemoModel();
  openAi = new OpenAI({ baseURL: model.openAiUrl, apiKey: "k", maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: model.url, apiKey: "k", maxRetries: 0 });
});
afterAll(() => model.stop());

const CANNED = /^Start with what matters .* take the simpler one\.$/s;
const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" }, unit: { enum: ["c", "f"] } },
  required: ["city", "days", "unit"],
};
const INPUT = { city: "Lisbon", days: 1, unit: "c" };

const user = (content: string) => [{ role: "user" as const, content }];

test("OpenAI's client reads chat completions, streamed and whole", async () => {
  const request = { model: "m", messages: user("Which shoes?") };
  const whole = await openAi.chat.completions.create(request);
  expect(whole.choices[0]).toMatchObject({ finish_reason: "stop", message: { role: "assistant" } });
  expect(whole.choices[0]?.message.content).toMatch(CANNED);
  expect(whole.usage?.total_tokens).toBeGreaterThan(10);
  const stream = openAi.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
  const final = await stream.finalChatCompletion();
  expect(final.choices[0]?.message.content).toBe(whole.choices[0]?.message.content);
  expect(final.usage).toEqual(
    whole.usage === undefined
      ? undefined
      : expect.objectContaining({ completion_tokens: whole.usage.completion_tokens }),
  );
});

test("OpenAI's client reads responses, streamed and whole", async () => {
  const whole = await openAi.responses.create({ model: "m", input: "Which shoes?" });
  expect(whole).toMatchObject({ status: "completed", object: "response" });
  expect(whole.output_text).toMatch(CANNED);
  const stream = openAi.responses.stream({ model: "m", input: [{ role: "user", content: "Which shoes?" }] });
  expect((await stream.finalResponse()).output_text).toBe(whole.output_text);
});

test("Anthropic's client reads messages, streamed and whole", async () => {
  const request = { model: "m", max_tokens: 1000, messages: user("Which shoes?") };
  const whole = await anthropic.messages.create(request);
  expect(whole).toMatchObject({ stop_reason: "end_turn", type: "message" });
  const stream = anthropic.messages.stream(request);
  expect(await stream.finalText()).toMatch(CANNED);
  const { content, usage } = await stream.finalMessage();
  expect(content).toEqual(
    whole.content.map(({ type, ...block }) => ({ type, text: "text" in block ? block.text : "" })),
  );
  expect(usage.output_tokens).toBe(whole.usage.output_tokens);
});

test.each([
  ["Please use the tool.", ["weather"]],
  ["Please use two tools.", ["weather", "news"]],
])("chat completions: %j calls %j, and the results get the final text", async (text, names) => {
  const tools = ["weather", "news"].map((name) => ({
    type: "function" as const,
    function: { name, parameters: PARAMETERS },
  }));
  const messages: OpenAI.ChatCompletionMessageParam[] = user(text);
  const first = await openAi.chat.completions.stream({ model: "m", messages, tools }).finalChatCompletion();
  const message = first.choices[0]?.message;
  expect(first.choices[0]?.finish_reason).toBe("tool_calls");
  const calls = (message?.tool_calls ?? []).flatMap((one) => (one.type === "function" ? [one] : []));
  expect(calls.map(({ function: called }) => called.name)).toEqual(names);
  expect(calls.map(({ function: called }) => JSON.parse(called.arguments))).toEqual(names.map(() => INPUT));
  expect(new Set(calls.map(({ id }) => id)).size).toBe(names.length);
  const results = calls.map(({ id }) => ({ role: "tool" as const, tool_call_id: id, content: "sunny" }));
  const next = [...messages, { role: "assistant" as const, tool_calls: calls }, ...results];
  const last = await openAi.chat.completions.create({ model: "m", messages: next, tools });
  expect(last.choices[0]?.message.content).toMatch(CANNED);
});

test.each([
  ["Please use the tool.", ["weather"]],
  ["Please use two tools.", ["weather", "news"]],
])("responses: %j calls %j, and the results get the final text", async (text, names) => {
  const tools = ["weather", "news"].map((name) => ({
    type: "function" as const,
    name,
    parameters: PARAMETERS,
    strict: false,
  }));
  const { output } = await openAi.responses.stream({ model: "m", input: text, tools }).finalResponse();
  const calls = output.flatMap((item) => (item.type === "function_call" ? [item] : []));
  expect(calls.map(({ name, arguments: input }) => [name, JSON.parse(input)])).toEqual(
    names.map((name) => [name, INPUT]),
  );
  const results = calls.map(({ call_id }) => ({
    type: "function_call_output" as const,
    call_id,
    output: "sunny",
  }));
  const calledBefore = calls.map(({ call_id, name, arguments: input }) => ({
    type: "function_call" as const,
    call_id,
    name,
    arguments: input,
  }));
  const next = [...user(text), ...calledBefore, ...results];
  expect((await openAi.responses.create({ model: "m", input: next, tools })).output_text).toMatch(CANNED);
});

test.each([
  ["Please use the tool.", ["weather"]],
  ["Please use two tools.", ["weather", "news"]],
])("messages: %j calls %j, and the results get the final text", async (text, names) => {
  const tools = ["weather", "news"].map((name) => ({
    name,
    input_schema: { ...PARAMETERS, type: "object" as const },
  }));
  const request = { model: "m", max_tokens: 1000, tools };
  const first = await anthropic.messages.stream({ ...request, messages: user(text) }).finalMessage();
  expect(first.stop_reason).toBe("tool_use");
  const calls = first.content.flatMap((block) => (block.type === "tool_use" ? [block] : []));
  expect(calls.map(({ name, input }) => [name, input])).toEqual(names.map((name) => [name, INPUT]));
  const results = calls.map(({ id }) => ({
    type: "tool_result" as const,
    tool_use_id: id,
    content: "sunny",
  }));
  const next = [
    ...user(text),
    { role: "assistant" as const, content: first.content },
    { role: "user" as const, content: results },
  ];
  const last = await anthropic.messages.stream({ ...request, messages: next }).finalMessage();
  expect(last.stop_reason).toBe("end_turn");
});

test("without tools, or with tools forbidden, the keyword gets a text", async () => {
  const messages = user("use the tool");
  const tools = [{ type: "function" as const, function: { name: "weather", parameters: PARAMETERS } }];
  const requests = [{}, { tools, tool_choice: "none" as const }].map((more) =>
    openAi.chat.completions.create({ model: "m", messages, ...more }),
  );
  for (const { choices } of await Promise.all(requests)) {
    expect(choices[0]?.message.content).toMatch(CANNED);
  }
  const forced = { tools, tool_choice: "required" as const, messages: user("Hello") };
  expect((await openAi.chat.completions.create({ model: "m", ...forced })).choices[0]?.finish_reason).toBe(
    "tool_calls",
  );
});

test("a turn that pauses goes on with the next call", async () => {
  const request = { model: "m", max_tokens: 1000 };
  const messages = user("Say so first, then pause the turn.");
  const paused = await anthropic.messages.stream({ ...request, messages }).finalMessage();
  expect(paused.stop_reason).toBe("pause_turn");
  expect(paused.content.map(({ type }) => type)).toEqual(["text", "server_tool_use"]);
  const next = [...messages, { role: "assistant" as const, content: paused.content }];
  const last = await anthropic.messages.create({ ...request, messages: next });
  expect(last.stop_reason).toBe("end_turn");
});

test("tools are called in as many rounds as the user wants, with the same ids if told so", async () => {
  const tools = [{ type: "function" as const, function: { name: "weather", parameters: PARAMETERS } }];
  const messages: OpenAI.ChatCompletionMessageParam[] = user("Use the tool in 2 rounds; number the calls.");
  const ids: string[][] = [];
  for (let round = 0; round < 3; round += 1) {
    const { choices } = await openAi.chat.completions.create({ model: "m", messages, tools });
    const calls = choices[0]?.message.tool_calls ?? [];
    ids.push(calls.map(({ id }) => id));
    messages.push({ role: "assistant", tool_calls: calls });
    messages.push(...calls.map(({ id }) => ({ role: "tool" as const, tool_call_id: id, content: "sunny" })));
  }
  expect(ids).toEqual([["weather:0"], ["weather:0"], []]);
});

test("an approval is asked for once, and the user's word gets the text", async () => {
  const input: OpenAI.Responses.ResponseInputItem[] = user("Ask for approval.");
  const first = await openAi.responses.stream({ model: "m", input }).finalResponse();
  const [request] = first.output;
  expect(request).toMatchObject({ type: "mcp_approval_request", server_label: "demo" });
  if (request?.type === "mcp_approval_request") {
    input.push(request, { type: "mcp_approval_response", approval_request_id: request.id, approve: true });
  }
  expect((await openAi.responses.create({ model: "m", input })).output_text).toMatch(CANNED);
});

test("reasoning and a refusal come in each interface's own form", async () => {
  const thought = await anthropic.messages
    .stream({ model: "m", max_tokens: 1000, messages: user("think first") })
    .finalMessage();
  expect(thought.content.map(({ type }) => type)).toEqual(["thinking", "text"]);
  const reasoned = await openAi.responses.stream({ model: "m", input: "think first" }).finalResponse();
  expect(reasoned.output.map(({ type }) => type)).toEqual(["reasoning", "message"]);
  const refused = await openAi.chat.completions
    .stream({ model: "m", messages: user("refuse this") })
    .finalChatCompletion();
  expect(refused.choices[0]?.message).toMatchObject({ refusal: "I can't help with that." });
  expect(refused.choices[0]?.message.content ?? "").toBe("");
  const declined = await anthropic.messages.create({
    model: "m",
    max_tokens: 9,
    messages: user("refuse this"),
  });
  expect(declined).toMatchObject({ stop_reason: "refusal", content: [] });
  const response = await openAi.responses.stream({ model: "m", input: "refuse this" }).finalResponse();
  expect(response.output).toMatchObject([{ content: [{ type: "refusal" }] }]);
});

test("models, embeddings and the count of tokens are answered", async () => {
  expect((await openAi.models.list()).data.map(({ id }) => id)).toEqual(["demo-model"]);
  expect((await openAi.models.retrieve("gpt-x")).id).toBe("gpt-x");
  expect((await anthropic.models.list()).data.map(({ id }) => id)).toEqual(["demo-model"]);
  const { input_tokens } = await anthropic.messages.countTokens({
    model: "m",
    messages: user("Which shoes?"),
  });
  expect(input_tokens).toBeGreaterThan(5);
  const { data } = await openAi.embeddings.create({ model: "m", input: ["a", "b"] });
  expect(data.map(({ embedding }) => embedding.length)).toEqual([8, 8]);
  expect(data[0]?.embedding).not.toEqual(data[1]?.embedding);
  expect(data[0]?.embedding.every((value) => Math.abs(value) <= 0.5)).toBe(true);
});

test("the clients repeat a call that failed once, and report other errors by class", async () => {
  const retrying = openAi.withOptions({ maxRetries: 1 });
  const messages = user("once more");
  const headers = { "X-Demo-Fault": "status=503;times=1" };
  const answer = await retrying.chat.completions.create({ model: "m", messages }, { headers });
  expect(answer.choices[0]?.message.content).toMatch(CANNED);
  const busy = { headers: { "X-Demo-Fault": "status=429" } };
  await expect(openAi.responses.create({ model: "m", input: "x" }, busy)).rejects.toThrow(
    OpenAI.RateLimitError,
  );
  const request = { model: "m", max_tokens: 9, messages };
  await expect(anthropic.messages.create(request, busy)).rejects.toThrow(Anthropic.RateLimitError);
  const failing = { headers: { "X-Demo-Fault": "error-event-after=4" } };
  await expect(anthropic.messages.stream(request, failing).finalMessage()).rejects.toThrow(
    Anthropic.APIError,
  );
  await expect(openAi.chat.completions.stream({ model: "m", messages }, failing).done()).rejects.toThrow(
    OpenAI.APIError,
  );
  await expect(openAi.responses.stream({ model: "m", input: "x" }, failing).done()).rejects.toThrow();
});
