/** Loads both entries as CommonJS does, and prints what they offer. */
const { createRelay, memoryOutbox, RelayError } = require("@adrelay/client");
const { fileOutbox } = require("@adrelay/client/node");

console.log([createRelay, memoryOutbox, RelayError, fileOutbox].map((one) => typeof one).join(" "));
