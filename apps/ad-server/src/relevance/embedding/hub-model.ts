import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { EmbeddingModelError } from "./embedder.ts";
import { downloadFile } from "./hub-download.ts";
import { SENTENCE_CONFIG_NAME, TOKENIZER_CONFIG_NAME, TOKENIZER_NAME, WEIGHTS_NAMES } from "./model-files.ts";

/** A model on the hub, at one commit: what a name holds tomorrow, nobody knows. */
export interface HubModel {
  readonly owner: string;
  readonly name: string;
  /** 40 hexadecimal digits. */
  readonly commit: string;
}

export interface HubOptions {
  readonly hubUrl: string;
  /** Models are kept below it, each in a folder of its own. */
  readonly folder: string;
  readonly log: Logger;
}

const HUB_MODEL = /^(?<owner>[\w-][\w.-]*)\/(?<name>[\w-][\w.-]*)@(?<commit>[0-9a-f]{40})$/;
/** Written when all files are there: from then on the hub isn't asked. */
const COMPLETE_NAME = ".complete";
const MIB = 1024 * 1024;
const WEIGHTS_BYTES_MAX = 1024 * MIB;
const TEXT_BYTES_MAX = 64 * MIB;

/** Reads `owner/name@commit`; undefined for another text. */
export function parseHubModel(text: string): HubModel | undefined {
  const { owner, name, commit } = HUB_MODEL.exec(text)?.groups ?? {};
  return owner === undefined || name === undefined || commit === undefined
    ? undefined
    : { owner, name, commit };
}

/**
 * The folder of a model, downloaded if it isn't there yet. A download that breaks off goes on with the files that
 * it lacks. Throws an EmbeddingModelError that names the address.
 */
export async function fetchHubModel(model: HubModel, options: HubOptions): Promise<string> {
  const { owner, name, commit } = model;
  const folder = join(options.folder, `${owner}--${name}--${commit.slice(0, 12)}`);
  const complete = join(folder, COMPLETE_NAME);
  if (existsSync(complete)) {
    return folder;
  }
  await mkdir(folder, { recursive: true });
  const base = `${options.hubUrl.replace(/\/+$/, "")}/${owner}/${name}/resolve/${commit}`;
  const fetchOne = (file: string, bytesMax: number) =>
    fetchFile({ url: `${base}/${file}`, file: join(folder, file), bytesMax, log: options.log });
  await fetchWeights(base, fetchOne);
  if (!(await fetchOne(TOKENIZER_NAME, TEXT_BYTES_MAX))) {
    throw new EmbeddingModelError(`${base}/${TOKENIZER_NAME} is not there`);
  }
  await fetchOne(TOKENIZER_CONFIG_NAME, TEXT_BYTES_MAX);
  await fetchOne(SENTENCE_CONFIG_NAME, TEXT_BYTES_MAX);
  await writeFile(complete, "");
  return folder;
}

async function fetchWeights(
  base: string,
  fetchOne: (file: string, bytesMax: number) => Promise<boolean>,
): Promise<void> {
  for (const name of WEIGHTS_NAMES) {
    if (await fetchOne(name, WEIGHTS_BYTES_MAX)) {
      return;
    }
  }
  throw new EmbeddingModelError(`${base} has none of ${WEIGHTS_NAMES.join(", ")}`);
}

/** False if the hub has no such file. */
async function fetchFile(options: {
  url: string;
  file: string;
  bytesMax: number;
  log: Logger;
}): Promise<boolean> {
  if (existsSync(options.file)) {
    return true;
  }
  const fetched = await downloadFile(options);
  switch (fetched.kind) {
    case "ok":
    case "absent":
      return fetched.kind === "ok";
    case "faulty":
      throw new EmbeddingModelError(`${options.url} can't be downloaded: ${fetched.reason}`);
    default:
      return fetched satisfies never;
  }
}
