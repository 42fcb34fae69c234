// Writes src/types.ts from spec/schema.json; with --check fails where the file is not what it would write.
//
// A generator of our own: the schema is small, made by one tool, and what comes out is read by people.

import { readFileSync, writeFileSync } from "node:fs";

const schema = JSON.parse(readFileSync(new URL("../../../spec/schema.json", import.meta.url), "utf8"));
const target = new URL("../src/types.ts", import.meta.url);

const withBytes = (where) => Object.keys(schema.operations).filter((name) => schema.operations[name].bytes === where);

// Names that mean something else in TypeScript.
const RENAMED = { Event: "SessionEvent" };

const nameOf = (ref) => {
  const name = ref.replace("#/$defs/", "");
  return RENAMED[name] ?? name;
};

const doc = (text, indent = "") => {
  if (!text) return "";
  const lines = text.replaceAll("*/", "* /").split("\n");
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join("")}${indent} */\n`;
};

const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));

const PRIMITIVE = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

// Alternatives of which some are objects with common properties besides.
function alternatives(node, indent) {
  const list = node.oneOf ?? node.anyOf;
  const inner = `${indent}  `;
  const parts = list.map((part) => ({ text: type(part, inner), doc: part.description }));
  if (!parts.some((part) => part.doc)) return [...new Set(parts.map((part) => part.text))].join(" | ");
  return parts.map((part) => `\n${doc(part.doc, inner)}${inner}| ${part.text}`).join("");
}

function object(node, indent) {
  const inner = `${indent}  `;
  const required = new Set(node.required ?? []);
  const fields = Object.entries(node.properties ?? {}).map(([name, value]) => {
    const mark = required.has(name) ? "" : "?";
    return `${doc(value.description, inner)}${inner}${key(name)}${mark}: ${type(value, inner)};\n`;
  });
  return fields.length ? `{\n${fields.join("")}${indent}}` : "Record<string, never>";
}

function type(node, indent = "") {
  if (node === true) return "unknown";
  if (node.$ref) return nameOf(node.$ref);
  if ("const" in node) return JSON.stringify(node.const);
  if (node.enum) return node.enum.map((value) => JSON.stringify(value)).join(" | ");
  const hasFields = Object.keys(node.properties ?? {}).length > 0;
  if (node.oneOf || node.anyOf) {
    const either = alternatives(node, indent);
    if (!hasFields) return either;
    return `${object(node, indent)} & (${either}${either.includes("\n") ? `\n${indent}` : ""})`;
  }
  if (node.allOf) return node.allOf.map((part) => type(part, indent)).join(" & ");
  if (Array.isArray(node.type)) {
    return node.type.map((one) => type({ ...node, type: one, description: undefined }, indent)).join(" | ");
  }
  if (node.type === "array") {
    if (node.prefixItems) return `[${node.prefixItems.map((item) => type(item, indent)).join(", ")}]`;
    const item = type(node.items ?? true, indent);
    return /^[\w.]+$/.test(item) ? `${item}[]` : `Array<${item}>`;
  }
  if (node.type === "object") {
    if (hasFields) return object(node, indent);
    const rest = node.additionalProperties;
    if (rest && rest !== true) return `Record<string, ${type(rest, indent)}>`;
    return rest === false ? "Record<string, never>" : "Record<string, unknown>";
  }
  return PRIMITIVE[node.type] ?? "unknown";
}

const definition = ([name, node]) => {
  const written = type(node);
  const isInterface = written.startsWith("{") && written.endsWith("}") && !node.oneOf && !node.anyOf;
  const shown = nameOf(`#/$defs/${name}`);
  return doc(node.description) + (isInterface ? `export interface ${shown} ${written}\n` : `export type ${shown} =${written.startsWith("\n") ? "" : " "}${written};\n`);
};

const table = (rows, fields) =>
  Object.entries(rows)
    .map(([name, row]) => `${doc(row.doc, "  ")}  ${JSON.stringify(name)}: ${fields(row, name)};\n`)
    .join("");

const rows = (list) => list.map((name) => `  ${JSON.stringify(name)},\n`).join("");

const words = (list) => list.map((name) => JSON.stringify(name)).join(" | ");

const text = [
  "// Made by scripts/types.mjs from spec/schema.json. Do not edit: `npm run types` writes it anew.\n",
  ...Object.entries(schema.$defs).map(definition),
  `/** Every operation: what it is asked with, and what it answers. */\nexport interface Operations {\n${table(
    schema.operations,
    (row) => `{ params: ${type(row.params)}; answer: ${type(row.answer)} }`,
  )}}\n`,
  `/** What a host sends without being asked, to a client that is attached. */\nexport interface HostEvents {\n${table(
    schema.events,
    (row) => type(row.params),
  )}}\n`,
  `/** Operations that are asked with bytes beside their parameters. */\nexport type SendsBytes = ${words(withBytes("asked"))};\n`,
  `/** Operations that answer with bytes beside their answer. */\nexport type GivesBytes = (typeof GIVES_BYTES)[number];\n`,
  `/** The same, to look at. */\nexport const GIVES_BYTES = [\n${rows(withBytes("answered"))}] as const;\n`,
  `/** The names of all operations. */\nexport const OPERATION_NAMES: ReadonlyArray<keyof Operations> = [\n${rows(Object.keys(schema.operations))}];\n`,
].join("\n");

if (process.argv.includes("--check")) {
  let there = "";
  try {
    there = readFileSync(target, "utf8");
  } catch {
    // Not there is not the same, too.
  }
  if (there !== text) {
    console.error("src/types.ts is not what spec/schema.json says: run `npm run types` and commit it");
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
