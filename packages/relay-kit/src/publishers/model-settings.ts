/** Where the models' servers are. The proxy calls them; the gateway's doctor looks whether they answer. */
import { baseUrlSchema } from "@adrelay/contract";
import { setting } from "@adrelay/service-kit";

/** Callers send the key of the model's server with each call. */
const modelUrlType = baseUrlSchema.refine(
  (url) => new URL(url).username === "" && new URL(url).password === "",
  {
    error: "must have no user and no password: each call has its own key",
  },
);

/** The base URLs of the models' servers. */
export const MODEL_SETTINGS = {
  OPENAI_BASE_URL: setting(
    modelUrlType,
    "https://api.openai.com/v1",
    "Base URL of the model's server for OpenAI's API, with its /v1. PUBLISHERS_FILE may name another for a publisher.",
  ),
  ANTHROPIC_BASE_URL: setting(
    modelUrlType,
    "https://api.anthropic.com",
    "Base URL of the model's server for Anthropic's API, without /v1. PUBLISHERS_FILE may name another for a publisher.",
  ),
} as const;
