// A reply as text without Markdown, for where nobody draws it: mails, chats, forms.
const BLOCKS = new Set(['P', 'DIV', 'H1', 'H2', 'H3', 'H4', 'H5', 'H6', 'UL', 'OL', 'LI', 'PRE', 'BLOCKQUOTE', 'TABLE', 'HR', 'SECTION', 'DETAILS']);
const TIGHT = new Set(['LI', 'TR']);
const LEFT_OUT = '.p-acts, .p-column, .p-goes-on, .p-code-head, .p-by, .p-sr, .p-table-csv, button, svg, .p-claim, sup:has(> .p-claim), .katex-html';

export function plainText(row) {
  const said = [...row.querySelectorAll('[data-testid="bot"] .prose')].filter((one) => !one.closest('.thought-group'));
  return said.map((one) => block(one).trim()).filter(Boolean).join('\n\n').replace(/[\u2060\u200b]/g, '');
}

// The text of an element: blocks parted by an empty line, rows of a list or a table by the end of a line.
function block(element, depth = 0) {
  let text = '';
  for (const node of element.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) { text += node.data.replace(/\s+/g, ' '); continue; }
    if (!(node instanceof Element) || node.matches(LEFT_OUT)) continue;
    if (!BLOCKS.has(node.tagName) && node.tagName !== 'TR') { text += inline(node, depth); continue; }
    const made = blockOf(node, depth);
    if (made) text = `${text.replace(/[ \n]+$/, '')}${text.trim() ? between(node, depth) : ''}${made}${between(node, depth)}`;
  }
  return text;
}

const between = (node, depth) => (TIGHT.has(node.tagName) || depth && /^[UO]L$/.test(node.tagName) ? '\n' : '\n\n');

function blockOf(node, depth) {
  switch (node.tagName) {
    case 'PRE': return node.textContent.replace(/\n+$/, '');
    case 'HR': return '———';
    case 'TABLE': return [...node.rows].map((line) => [...line.cells].map((cell) => block(cell).trim()).join('\t')).join('\n');
    case 'LI': return `${'  '.repeat(depth - 1)}${sign(node)} ${block(node, depth).trim()}`;
    case 'UL': case 'OL': return block(node, depth + 1).replace(/^\n+|\n+$/g, '');
    default: return block(node, depth).trim();
  }
}

function sign(item) {
  const list = item.parentElement;
  if (list.tagName !== 'OL') return '•';
  return `${list.start + [...list.children].filter((one) => one.tagName === 'LI').indexOf(item)}.`;
}

function inline(node, depth) {
  if (node.tagName === 'BR') return '\n';
  if (node.matches('.katex')) return node.querySelector('annotation')?.textContent ?? node.textContent;
  if (node.tagName === 'SUP' && node.querySelector('.cite')) return ` [${node.textContent.trim()}]`;
  if (node.tagName === 'CODE') return node.textContent;
  if (node.tagName === 'IMG') return node.alt;
  return block(node, depth);
}
