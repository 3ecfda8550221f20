// Which parts of the page hold what, told by attributes that the styles read. Rules with `:has()` would say it without a
// script, but with a hundred of them a browser finds the styles of the whole page anew whenever anything comes or goes.
// An observer is heard before the next frame, so nothing is drawn in between.

// The part that gets the attribute; the attribute; what it holds; the way there, where not anywhere in it.
const IN_PAGE = [
  [':root', 'data-drawn', '#room'],
  [':root', 'data-empty', '[data-room="empty"]', '#status [data-room="empty"]'],
  [':root', 'data-running', '[data-state="running"]', '#status [data-state="running"]'],
  [':root', 'data-stopping', '[data-state="stopping"]', '#status [data-state="stopping"]'],
  [':root', 'data-panel', '.p-evidence', '#page .p-evidence'],
  [':root', 'data-fine', '.p-fine', '#page .p-fine'],
  [':root', 'data-inspecting', '.p-inspect', '#page .p-inspect'],
  [':root', 'data-steering', '.p-steer', '#page .p-steer'],
  ['#ask', 'data-filled', '.p-asks'],
  ['#queue', 'data-filled', '.p-queue'],
  ['#starters', 'data-filled', '.p-starters, .p-follow-ups'],
  ['#talk', 'data-starters', '.p-starters', '#starters .p-starters'],
  ['#composer', 'data-records', '.recording-overlay'],
  ['#composer', 'data-mentions', '#p-mention', ':scope > #p-mention'],
];
const IN_CHAT = [
  ['.message', 'data-of-call', '.thought-group', ':scope > div > .thought-group'],
  ['.content', 'data-thoughts', '.p-thoughts'],
  ['.content', 'data-calls', '.children', ':scope > .children'],
  ['.content', 'data-inside', '.p-inside', ':scope > .message-content .p-inside'],
  ['.thought-group', 'data-expanded', '.title', ':scope > .title.expanded'],
  ['.thought-group', 'data-thinks', '.p-think'],
  ['.thought-group', 'data-words', '.p-words', ':scope > .title .p-words'],
  ['.message-row', 'data-versus', '.p-versus'],
  ['.message-wrap, .message-row, .message', 'data-columns', '.p-column'],
  ['.message-row', 'data-left', '.p-column-1'],
  ['.message-row', 'data-right', '.p-column-2'],
  ['li', 'data-task', 'input[type="checkbox"]', ':scope > input[type="checkbox"]'],
  ['sup', 'data-mark', 'a.cite, a.p-claim', ':scope > :is(a.cite, a.p-claim)'],
  ['sup', 'data-foot', 'a.p-foot, a.p-footback', ':scope > :is(a.p-foot, a.p-footback)'],
];
const RULES = [...IN_PAGE, ...IN_CHAT].map(([part, attribute, held, way = held]) => ({ part, attribute, held, way, parts: new Set() }));
const HELD = RULES.map(({ held }) => held).join(', ');

function heldIn(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return [];
  const all = [...node.querySelectorAll(HELD)];
  if (node.matches(HELD)) all.push(node);
  return all;
}

// What came, went or changed says something of each part around the place where it is or was.
function note(held, place) {
  for (const rule of RULES) {
    if (!held.matches(rule.held)) continue;
    for (let part = place.closest(rule.part); part; part = part.parentElement?.closest(rule.part)) rule.parts.add(part);
  }
}

function tell() {
  for (const { attribute, way, parts } of RULES) {
    for (const part of parts) part.toggleAttribute(attribute, Boolean(part.querySelector(way)));
    parts.clear();
  }
}

function changed(records) {
  for (const { type, target, addedNodes, removedNodes } of records) {
    if (type === 'attributes') {
      if (target.matches('.title')) note(target, target);  // a call that was opened or closed
      continue;
    }
    for (const node of addedNodes) for (const held of heldIn(node)) note(held, held);
    for (const node of removedNodes) for (const held of heldIn(node)) note(held, target);
  }
  tell();
}

export function start() {
  new MutationObserver(changed).observe(document.documentElement, { subtree: true, childList: true, attributes: true, attributeFilter: ['class'] });
  for (const held of heldIn(document.documentElement)) note(held, held);
  tell();
}
