// xterm.js as a reference: one job per line of standard input, one state per line of standard output.
// A job is {cols, rows, steps: [{w: base64} | {r: [cols, rows]}]}.
const { Terminal } = require('@xterm/headless');
const { Unicode11Addon } = require('@xterm/addon-unicode11');
const readline = require('readline');

function open(cols, rows) {
  const terminal = new Terminal({ cols, rows, scrollback: 10000, allowProposedApi: true });
  terminal.loadAddon(new Unicode11Addon());
  terminal.unicode.activeVersion = '11';
  terminal.heldTitle = '';
  terminal.onTitleChange((title) => (terminal.heldTitle = title));
  return terminal;
}

const write = (terminal, bytes) => new Promise((done) => terminal.write(bytes, done));

function color(isDefault, isPalette, value) {
  if (isDefault) return 'd';
  return isPalette ? 'p' + value : '#' + value.toString(16).padStart(6, '0');
}

function cellKey(terminal, cell) {
  const width = cell.getWidth();
  const text = width === 0 ? '' : cell.getChars() || ' ';
  const extended = cell.hasExtendedAttrs && cell.hasExtendedAttrs() ? cell.extended : null;
  const underlined = cell.fg & 0x10000000;
  let attributes = '';
  if (cell.isBold()) attributes += 'b';
  if (cell.isDim()) attributes += 'f';
  if (cell.isItalic()) attributes += 'i';
  if (underlined) attributes += 'u' + ((extended && extended.underlineStyle) || 1);
  if (cell.isBlink()) attributes += 'k';
  if (cell.isInverse()) attributes += 'r';
  if (cell.isInvisible()) attributes += 'h';
  if (cell.isStrikethrough()) attributes += 's';
  let link = '';
  if (extended && extended.urlId) {
    const found = terminal._core._oscLinkService.getLinkData(extended.urlId);
    link = found ? found.uri : '';
  }
  const fg = color(cell.isFgDefault(), cell.isFgPalette(), cell.getFgColor());
  const bg = color(cell.isBgDefault(), cell.isBgPalette(), cell.getBgColor());
  return [text, width, fg, bg, attributes, link].join('|');
}

function state(terminal) {
  const buffer = terminal.buffer.active;
  const inner = terminal._core.buffer;
  const modes = terminal.modes;
  const cells = [];
  for (let y = 0; y < terminal.rows; y++) {
    const line = buffer.getLine(buffer.baseY + y);
    const row = [];
    for (let x = 0; x < terminal.cols; x++) row.push(cellKey(terminal, line.getCell(x)));
    cells.push(row);
  }
  const text = (lines, from, to) => {
    const out = [];
    for (let y = from; y < to; y++) out.push(lines.getLine(y).translateToString(true).replace(/ +$/, ''));
    return out;
  };
  const normal = terminal.buffer.normal;
  return {
    cells,
    history: text(normal, 0, normal.baseY),
    primary: text(normal, normal.baseY, normal.length),
    cursor: [Math.min(buffer.cursorX, terminal.cols - 1), buffer.cursorY],
    pending: buffer.cursorX >= terminal.cols,
    alternate: buffer.type === 'alternate',
    region: [inner.scrollTop, inner.scrollBottom],
    saved: [inner.savedX, Math.max(inner.savedY - inner.ybase, 0)],
    tabs: Object.keys(inner.tabs).map(Number).filter((x) => x < terminal.cols),
    modes: {
      appCursor: modes.applicationCursorKeysMode,
      appKeypad: modes.applicationKeypadMode,
      bracketed: modes.bracketedPasteMode,
      insert: modes.insertMode,
      origin: modes.originMode,
      wrap: modes.wraparoundMode,
      focus: modes.sendFocusMode,
      mouse: modes.mouseTrackingMode,
      encoding: terminal._core.coreMouseService.activeEncoding,
      hidden: !!terminal._core.coreService.isCursorHidden,
      cursorStyle: terminal._core.coreService.decPrivateModes.cursorStyle || '',
      title: terminal.heldTitle,
    },
  };
}

async function run(job) {
  const terminal = open(job.cols, job.rows);
  for (const step of job.steps) {
    if (step.w !== undefined) await write(terminal, new Uint8Array(Buffer.from(step.w, 'base64')));
    else terminal.resize(step.r[0], step.r[1]);
  }
  const result = state(terminal);
  terminal.dispose();
  return result;
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await run(JSON.parse(line))) + '\n');
  }
})();
