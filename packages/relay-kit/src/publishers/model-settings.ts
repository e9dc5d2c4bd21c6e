/** Where the models' servers are. The proxy calls them; the gateway's doctor looks whether they answer. */
import { baseUrlSchema } from "@adrelay/contract";
import { FileReader, loadTls, type TlsResult } from "@adrelay/provider";
import { optionalSetting, setting, textType } from "@adrelay/service-kit";

/** Callers send the key of the model's server with each call. */
const modelUrlType = baseUrlSchema.refine(
  (url) => new URL(url).username === "" && new URL(url).password === "",
  {
    error: "must have no user and no password: each call has its own key",
  },
);

/** The base URLs of the models' servers, and the certificates for the connections to them. */
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
  MODEL_CA_FILE: optionalSetting(
    textType,
    "PEM file of the authorities that may sign the certificates of models' servers, in place of the well-known ones. Read at start. The gateway's doctor uses it, too.",
  ),
  MODEL_CLIENT_CERT_FILE: optionalSetting(
    textType,
    "PEM file of the certificate that we show to models' servers, with its chain. Read at start.",
  ),
  MODEL_CLIENT_KEY_FILE: optionalSetting(
    textType,
    "PEM file of the private key of that certificate, without passphrase. Read at start.",
  ),
} as const;

/** The settings that name the files of certificates. */
interface ModelTlsSettings {
  readonly MODEL_CA_FILE?: string | undefined;
  readonly MODEL_CLIENT_CERT_FILE?: string | undefined;
  readonly MODEL_CLIENT_KEY_FILE?: string | undefined;
}

/** Reads the certificates for models' servers, as their files are now. */
export function loadModelTls(settings: ModelTlsSettings): TlsResult {
  const files = {
    ca: settings.MODEL_CA_FILE,
    clientCert: settings.MODEL_CLIENT_CERT_FILE,
    clientKey: settings.MODEL_CLIENT_KEY_FILE,
  };
  const names = {
    ca: "MODEL_CA_FILE",
    clientCert: "MODEL_CLIENT_CERT_FILE",
    clientKey: "MODEL_CLIENT_KEY_FILE",
  };
  return loadTls(files, names, new FileReader());
}
