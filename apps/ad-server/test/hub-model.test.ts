/** The download of a model, from a hub on this machine. */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { downloadFile, fetchHubModel, parseHubModel } from "../src/relevance/embedding/model-files.ts";
import { loadSentenceEmbedder } from "../src/relevance/embedding/sentence-embedder.ts";
import { makeFolder, writeTinyModel } from "./tiny-embedding-model.ts";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const MODEL = { owner: "adrelay", name: "tiny", commit: COMMIT } as const;
const log = pino({ level: "silent" });

interface Hub {
  readonly url: string;
  /** Paths that were asked for, below the commit. */
  readonly asked: string[];
  close(): Promise<void>;
}

async function startHub(answer: RequestListener): Promise<Hub> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url?.split(`/adrelay/tiny/resolve/${COMMIT}/`)[1] ?? "elsewhere");
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  onTestFinished(close);
  return { url: `http://127.0.0.1:${port}`, asked, close };
}

/** A hub that has the files of a folder. */
function filesOf(folder: string): RequestListener {
  return ({ url = "" }, response) => {
    const file = join(folder, url.split(`${COMMIT}/`)[1] ?? "");
    if (existsSync(file)) {
      response.end(readFileSync(file));
    } else {
      response.writeHead(404).end("not found");
    }
  };
}

const namesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort();

test("a model is downloaded once and loads from its folder without the hub", async () => {
  const hub = await startHub(filesOf(writeTinyModel(makeFolder(), {}, "onnx/model_quantized.onnx")));
  const options = { hubUrl: `${hub.url}/`, folder: makeFolder(), log };
  const folder = await fetchHubModel(MODEL, options);
  expect(hub.asked).toEqual([
    "model.onnx",
    "onnx/model_quantized.onnx",
    "tokenizer.json",
    "tokenizer_config.json",
    "config_sentence_transformers.json",
  ]);
  expect(namesBelow(folder)).toEqual([".complete", "model_quantized.onnx", "tokenizer.json"]);
  await hub.close();
  expect(await fetchHubModel(MODEL, options)).toBe(folder);
  const loaded = await loadSentenceEmbedder({ folder, prefixes: "model", tokensMax: 16, threads: 1 });
  expect(loaded.kind).toBe("ok");
});

test("a download that breaks off leaves no file and goes on with what is missing", async () => {
  const files = filesOf(writeTinyModel(makeFolder()));
  let isBroken = true;
  const hub = await startHub((request, response) => {
    if (isBroken && request.url?.endsWith("/tokenizer.json")) {
      response.writeHead(200, { "Content-Length": 1000 }).write("{", () => response.destroy());
    } else {
      files(request, response);
    }
  });
  const options = { hubUrl: hub.url, folder: makeFolder(), log };
  await expect(fetchHubModel(MODEL, options)).rejects.toThrow(/tokenizer\.json can't be downloaded/);
  expect(namesBelow(options.folder)).toEqual(["model.onnx"]);
  isBroken = false;
  hub.asked.length = 0;
  await fetchHubModel(MODEL, options);
  expect(hub.asked).not.toContain("model.onnx");
});

test.each([
  ["has no weights", 404, /has none of model\.onnx/],
  ["wants a login", 401, /model\.onnx can't be downloaded: the answer was 401/],
  ["fails", 503, /model\.onnx can't be downloaded: the answer was 503/],
])("a hub that %s is reported with its address", async (_, status, message) => {
  const hub = await startHub((_request, response) => response.writeHead(status).end());
  await expect(fetchHubModel(MODEL, { hubUrl: hub.url, folder: makeFolder(), log })).rejects.toThrow(message);
});

test("a hub that can't be reached is reported with address and reason", async () => {
  const hub = await startHub(() => {});
  await hub.close();
  const fetching = fetchHubModel(MODEL, { hubUrl: hub.url, folder: makeFolder(), log });
  await expect(fetching).rejects.toThrow(/127\.0\.0\.1.*can't be downloaded.*ECONNREFUSED/);
});

test("a file that is larger than its bound is given up", async () => {
  const hub = await startHub((_request, response) => response.end("x".repeat(2000)));
  const folder = makeFolder();
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "large");
  const result = await downloadFile({ url: hub.url, file, bytesMax: 1000, log });
  expect(result).toEqual({ kind: "faulty", reason: "it has more than 1000 bytes" });
  expect(readdirSync(folder)).toEqual([]);
});

test.each([
  [`intfloat/e5-small-v2@${COMMIT}`, { owner: "intfloat", name: "e5-small-v2", commit: COMMIT }],
  ["intfloat/e5-small-v2", undefined],
  ["intfloat/e5-small-v2@main", undefined],
  [`../../etc@${COMMIT}`, undefined],
  [`a/..@${COMMIT}`, undefined],
])("the model %s is read as %j", (text, model) => {
  expect(parseHubModel(text)).toEqual(model);
});
