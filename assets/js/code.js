// Blocks of code in a reply: a head with language and lines, to fold, wrap, number, download and copy.
import { make } from './models_form.js';
import { onChange, status } from './state.js';
import { local } from './storage.js';
import { lang, say } from './words.js';

const LONG = 60;   // lines from which a block is folded
const FIRST = 3;   // lines of it that stay
const NUMBERS = 'p-lines';
const BLOCKS = '#chat .bot-row .prose .code_wrap:not([data-lines])';
const NAMES = { bash: 'Bash', c: 'C', cpp: 'C++', cs: 'C#', csharp: 'C#', css: 'CSS', csv: 'CSV', diff: 'Diff', go: 'Go', html: 'HTML', ini: 'INI',
  java: 'Java', javascript: 'JavaScript', js: 'JavaScript', json: 'JSON', jsx: 'JSX', kotlin: 'Kotlin', latex: 'LaTeX', lua: 'Lua', markdown: 'Markdown',
  md: 'Markdown', php: 'PHP', py: 'Python', python: 'Python', r: 'R', rb: 'Ruby', ruby: 'Ruby', rs: 'Rust', rust: 'Rust', sh: 'Shell', shell: 'Shell',
  sql: 'SQL', svg: 'SVG', swift: 'Swift', toml: 'TOML', ts: 'TypeScript', tsx: 'TSX', typescript: 'TypeScript', xml: 'XML', yaml: 'YAML', yml: 'YAML' };
const ENDINGS = { bash: 'sh', csharp: 'cs', javascript: 'js', kotlin: 'kt', latex: 'tex', markdown: 'md', python: 'py', ruby: 'rb', rust: 'rs', shell: 'sh',
  typescript: 'ts' };

// What the reader did with a block outlives its being drawn anew, as happens with each frame of a reply.
const states = new WeakMap();
const seen = new WeakSet();  // rows that were written before the reader's eyes: nothing in them folds by itself

const languageOf = (code) => /(?:^|\s)language-([\w+#.-]+)/.exec(code.className)?.[1]?.toLowerCase() ?? '';
const numbered = () => local.get(NUMBERS) === 'on';

function linesIn(text) {
  let count = text.endsWith('\n') ? 0 : 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

function stateOf(block) {
  const row = block.closest('.message-row');
  const place = [...row.querySelectorAll('.code_wrap')].indexOf(block);
  if (!states.has(row)) states.set(row, new Map());
  const all = states.get(row);
  if (!all.has(place)) all.set(place, { open: null, wraps: false });
  return { row, mine: all.get(place) };
}

function button(act, label, pressed) {
  const element = make('button', { type: 'button', className: `p-icon p-code-${act}`, title: label, attributes: { 'data-code': act, 'aria-label': label } });
  if (pressed !== undefined) element.setAttribute('aria-pressed', String(pressed));
  return element;
}

// A line of a diff has the colour of what it does; Gradio's colours know no diffs.
function colour(code) {
  const kinds = { '+': 'p-added', '-': 'p-left', '@': 'p-hunk' };
  const lines = code.textContent.split('\n');
  code.replaceChildren(...lines.flatMap((line, at) => {
    const kind = /^(\+\+\+|---) /.test(line) ? 'p-hunk' : kinds[line[0]];
    const piece = kind ? make('span', { className: kind, textContent: line }) : document.createTextNode(line);
    return at < lines.length - 1 ? [piece, '\n'] : [piece];
  }));
}

function shape(block, { row, mine }, lines) {
  const long = lines >= LONG;
  const open = mine.open ?? !(long && !seen.has(row));
  const some = long && !open;  // folded, a long one shows how it begins
  block.classList.toggle('p-shut', !open && !some);
  block.classList.toggle('p-cut', some);
  block.classList.toggle('p-wraps', mine.wraps);
  block.querySelector('[data-code="fold"]').setAttribute('aria-expanded', String(open));
  block.querySelector('[data-code="wrap"]').setAttribute('aria-pressed', String(mine.wraps));
  const more = block.querySelector('.p-code-more');
  if (more) more.hidden = !some;
}

function dress(block) {
  const code = block.querySelector('pre > code');
  if (!code || block.closest('.content')) return void (block.dataset.lines = '');  // what a tool was given, or gave
  const language = languageOf(code);
  const lines = linesIn(code.textContent);
  block.dataset.lines = lines;
  if (language === 'diff') colour(code);
  const fold = make('button', { type: 'button', className: 'p-code-fold', attributes: { 'data-code': 'fold' } },
    make('span', { className: 'p-code-name', textContent: NAMES[language] ?? (language || say('code_text')) }));
  const acts = [button('numbers', say('code_numbers'), numbered()), button('wrap', say('code_wrap'), false), button('download', say('code_download'))];
  const head = make('div', { className: 'p-code-head' }, fold,
    make('span', { className: 'p-count', textContent: say(lines === 1 ? 'code_line' : 'code_lines', { n: lines.toLocaleString(lang()) }) }), ...acts);
  const copy = block.querySelector('.copy_code_button');
  if (copy) head.append(copy);
  block.prepend(head);
  if (lines >= LONG) {
    const more = make('button', { type: 'button', className: 'p-code-more', hidden: true, textContent: say('code_more', { n: (lines - FIRST).toLocaleString(lang()) }), attributes: { 'data-code': 'fold' } });
    block.append(more);
  }
  number(block);
  shape(block, stateOf(block), lines);
}

function number(block) {
  const pre = block.querySelector('pre');
  pre.querySelector('.p-gutter')?.remove();
  block.classList.toggle('p-numbered', numbered());
  if (!numbered()) return;
  const gutter = make('span', { className: 'p-gutter', attributes: { 'aria-hidden': 'true' } });
  gutter.dataset.numbers = Array.from({ length: Number(block.dataset.lines) }, (_, at) => at + 1).join('\n');
  pre.prepend(gutter);
}

const ACTS = {
  fold(block, state) {
    const was = block.querySelector('.p-code-fold').getAttribute('aria-expanded') === 'true';
    state.mine.open = !was;
    shape(block, state, Number(block.dataset.lines));
    if (was && block.getBoundingClientRect().top < 0) block.scrollIntoView({ block: 'nearest' });
    block.querySelector('.p-code-fold').focus({ preventScroll: true });
  },
  wrap(block, state) {
    state.mine.wraps = !state.mine.wraps;
    shape(block, state, Number(block.dataset.lines));
  },
  numbers() {
    if (numbered()) local.remove(NUMBERS);
    else local.set(NUMBERS, 'on');
    for (const one of document.querySelectorAll('#chat .code_wrap:has(> .p-code-head)')) {
      number(one);
      one.querySelector('[data-code="numbers"]').setAttribute('aria-pressed', String(numbered()));
    }
  },
  download(block) {
    const code = block.querySelector('pre > code');
    const language = languageOf(code);
    const known = ENDINGS[language] ?? (language in NAMES ? language : 'txt');
    const href = URL.createObjectURL(new Blob([code.textContent], { type: 'text/plain' }));
    make('a', { href, download: `${say('code_file')}.${known}` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
  },
};

function clicked({ target }) {
  const pressed = target.closest?.('#chat [data-code]');
  const block = pressed?.closest('.code_wrap');
  if (block) ACTS[pressed.dataset.code](block, stateOf(block));
}

function look() {
  if (status()?.state === 'running') {
    const last = document.querySelector('#chat .message-row:last-of-type');
    if (last) seen.add(last);
  }
  document.querySelectorAll(BLOCKS).forEach(dress);
}

export function start() {
  addEventListener('click', clicked);
  onChange(look);
}
