// Finds in flows what a replay would answer differently: clocks, chance, the environment, and waiting past `ctx`.
//
// It reads words, not syntax trees: a parser would be the package's only dependency. Texts, comments and what stands inside
// `ctx.step(…)` are left out.

/** Something in a flow that differs from replay to replay. */
export interface Finding {
  line: number;
  call: string;
  instead: string;
}

const INSTEAD: Array<[RegExp, string]> = [
  [/\bDate\.now\b/g, "ctx.now()"],
  [/\bnew Date\(\s*\)/g, "new Date(await ctx.now())"],
  [/\bperformance\.now\b/g, "ctx.now()"],
  [/\bprocess\.hrtime\b/g, "ctx.now()"],
  [/\bMath\.random\b/g, "ctx.random()"],
  [/\b(?:crypto\.)?(?:getRandomValues|randomBytes|randomInt)\b/g, "ctx.random()"],
  [/\b(?:crypto\.)?randomUUID\b/g, "ctx.uuid()"],
  [/\bset(?:Timeout|Interval|Immediate)\b/g, "ctx.sleep()"],
  [/\bprocess\.env\b/g, "ctx.step()"],
  [/\bfetch(?=\s*\()/g, "ctx.step()"],
  [/\breadFile(?:Sync)?\b/g, "ctx.step()"],
  [/\b(?:exec|execFile|spawn)(?:Sync)?(?=\s*\()/g, "ctx.run()"],
];

/** A slash behind one of these begins a pattern; behind a name or a bracket it divides. */
const BEFORE_PATTERN = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\breturn|\btypeof|\bcase|=>)\s*$/;

/** Looks through every function that is given to `flow(…)`. */
export function lint(source: string): Finding[] {
  const code = blanked(source);
  const found: Finding[] = [];
  for (const [from, to] of calls(code, /(?<![.\w$])flow(?:<[^(]*>)?\s*\(/g)) {
    let inside = code.slice(from, to);
    for (const [at, end] of calls(inside, /\.step(?:<[^(]*>)?\s*\(/g)) inside = blank(inside, at, end);
    for (const [pattern, instead] of INSTEAD) {
      for (const { index, 0: call } of inside.matchAll(pattern)) {
        found.push({ line: code.slice(0, from + index).split("\n").length, call, instead });
      }
    }
  }
  return found.sort((a, b) => a.line - b.line);
}

/** A finding as people read it. */
export function describe({ line, call, instead }: Finding): string {
  return `line ${line}: a flow uses ${call}, which a replay answers differently; use ${instead}`;
}

/** Where the arguments of calls stand: behind the opening bracket, up to the closing one. Nested calls are part of the outer. */
function calls(code: string, opening: RegExp): Array<[number, number]> {
  const found: Array<[number, number]> = [];
  for (const match of code.matchAll(opening)) {
    const from = match.index + match[0].length;
    if (from <= (found.at(-1)?.[1] ?? 0)) continue;
    let depth = 1;
    let at = from;
    for (; at < code.length && depth > 0; at++) {
      if ("([{".includes(code[at] ?? "")) depth++;
      else if (")]}".includes(code[at] ?? "")) depth--;
    }
    found.push([from, at]);
  }
  return found;
}

function blank(text: string, from: number, to: number): string {
  return text.slice(0, from) + text.slice(from, to).replace(/[^\n]/g, " ") + text.slice(to);
}

/** The source with its comments, texts and patterns as spaces; what stands in `${…}` is code. */
function blanked(source: string): string {
  let code = "";
  let at = 0;
  // How deep the brackets are in each template whose `${` is open.
  const depths: number[] = [];
  const skip = (to: number) => {
    code += source.slice(at, to).replace(/[^\n]/g, " ");
    at = to;
  };
  const template = () => {
    // Up to the closing backtick or the next `${`, which leads back into code.
    const end = find(source, /`|\$\{/, at);
    const isCode = source[end - 1] === "{";
    skip(end);
    if (isCode) depths.push(0);
  };
  while (at < source.length) {
    const rest = source.slice(at, at + 2);
    const c = source[at] ?? "";
    if (rest === "//") skip(ends(source, "\n", at));
    else if (rest === "/*") skip(ends(source, "*/", at + 2));
    else if (c === '"' || c === "'") skip(find(source, c === '"' ? /["\n]/ : /['\n]/, at + 1));
    else if (c === "`") {
      skip(at + 1);
      template();
    } else if (c === "/" && BEFORE_PATTERN.test(code.slice(-40))) skip(find(source, /[/\n]/, at + 1));
    else if (c === "}" && depths.at(-1) === 0) {
      depths.pop();
      skip(at + 1);
      template();
    } else {
      if (depths.length > 0 && c === "{") depths[depths.length - 1] = (depths.at(-1) ?? 0) + 1;
      if (depths.length > 0 && c === "}") depths[depths.length - 1] = (depths.at(-1) ?? 0) - 1;
      code += c;
      at++;
    }
  }
  return code;
}

function ends(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from);
  return found < 0 ? text.length : found + mark.length;
}

/** Behind the next match that no backslash stands before. */
function find(text: string, mark: RegExp, from: number): number {
  const pattern = new RegExp(`\\\\[^]|(${mark.source})`, "g");
  pattern.lastIndex = from;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    if (match[1] !== undefined) return pattern.lastIndex;
  }
  return text.length;
}
