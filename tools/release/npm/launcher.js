#!/usr/bin/env node
// Runs the dowel binary for this platform, which npm installs as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
const packageName = `@dowel-mcp/${platform}`;

let binary;
try {
  const name = process.platform === "win32" ? "dowel.exe" : "dowel";
  binary = require.resolve(`${packageName}/bin/${name}`);
} catch {
  console.error(
    `dowel: the package ${packageName} is not installed. If dowel supports your platform (linux, darwin or win32 on ` +
      `x64 or arm64), install again without --omit=optional or --no-optional. Otherwise build it with Go: ` +
      `go install github.com/dowel-mcp/dowel/cmd/dowel@latest`,
  );
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit", windowsHide: true });

// A terminal sends SIGINT to the whole foreground group, so the child receives it too. Without a
// terminal, and for the other signals, only this process receives the signal and must forward it.
const onTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
const handlers = { SIGTERM: forward, SIGHUP: forward, SIGINT: onTerminal ? () => {} : forward };
for (const [signal, handler] of Object.entries(handlers)) process.on(signal, handler);

function forward(signal) {
  child.kill(signal);
}

child.on("error", (error) => {
  console.error(`dowel: cannot start ${binary}: ${error.message}`);
  process.exit(1);
});

child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const [name, handler] of Object.entries(handlers)) process.off(name, handler);
  process.kill(process.pid, signal);
});
