#!/usr/bin/env node
import { runProcess } from "./run-cli.ts";

await runProcess(process);
