// Runs a binary of the package for this platform, which npm installs as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { isatty } = require("node:tty");

/** Runs program of the package prefix + platform with the arguments of this process, and ends as it does. */
exports.launch = function launch(program, prefix) {
  const packageName = `${prefix}${process.platform}-${process.arch}`;
  let binary;
  try {
    const name = process.platform === "win32" ? `${program}.exe` : program;
    binary = require.resolve(`${packageName}/bin/${name}`);
  } catch {
    console.error(
      `${program}: the package ${packageName} is not installed. If dowel supports your platform (linux, darwin or win32 ` +
        `on x64 or arm64), install again without --omit=optional or --no-optional. Otherwise build it with Go: ` +
        `https://github.com/dowel-mcp/dowel`,
    );
    process.exit(1);
  }

  const child = spawn(binary, process.argv.slice(2), { stdio: "inherit", windowsHide: true });

  // A terminal sends SIGINT to the whole foreground group, so the child receives it too. Without a
  // terminal, and for the other signals, only this process receives the signal and must forward it.
  const forward = (signal) => child.kill(signal);
  // process.stdin.isTTY would make the pipes that the child inherits non-blocking; isatty does not.
  const onTerminal = [0, 1, 2].some((stream) => isatty(stream));
  const handlers = { SIGTERM: forward, SIGHUP: forward, SIGINT: onTerminal ? () => {} : forward };
  for (const [signal, handler] of Object.entries(handlers)) process.on(signal, handler);

  child.on("error", (error) => {
    console.error(`${program}: cannot start ${binary}: ${error.message}`);
    process.exit(1);
  });

  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    for (const [name, handler] of Object.entries(handlers)) process.off(name, handler);
    process.kill(process.pid, signal);
  });
};
