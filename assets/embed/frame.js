// The chat in the frame. What is said stays in this tab: `sessionStorage` where the browser allows it in a frame.
const words = JSON.parse(document.body.dataset.words);
const at = (id) => document.getElementById(id);
const [talk, form, text, send, again, source] = ['talk', 'ask', 'text', 'send', 'again', 'source'].map(at);
const given = new URLSearchParams(location.hash.slice(1));
const key = given.get('key') || '';
const who = given.get('who') || '';
const kept = `parlour-embed-${key.slice(-8)}-${who}`;
let turns = [];  // { role, content, html, cited }
let starters = [];
let running = null;

function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function keep() {
  try { sessionStorage.setItem(kept, JSON.stringify(turns.slice(-40))); } catch { /* nothing is kept in this frame */ }
}

function earlier() {
  try { return JSON.parse(sessionStorage.getItem(kept) || '[]'); } catch { return []; }
}

function call(path, options = {}) {
  return fetch(`./embed/${path}`, { credentials: 'omit', ...options, headers: { Authorization: `Bearer ${key}`, 'Accept-Language': document.documentElement.lang, ...options.headers } });
}

// The server says what is wrong in English, as programs want it.
async function problem(answer) {
  if (answer.status === 429) return words.often;
  if (!document.documentElement.lang.startsWith('en')) return words.failed;
  try { return (await answer.json()).error?.message || words.failed; } catch { return words.failed; }
}

const isAtEnd = () => talk.scrollHeight - talk.scrollTop - talk.clientHeight < 40;

function bubble(turn) {
  if (turn.role === 'user') return made('div', { className: 'turn mine', dir: 'auto', textContent: turn.content });
  const element = made('div', { className: 'turn', dir: 'auto' });
  element.innerHTML = turn.html;  // made by the server, which escapes every sign of the text
  adorn(element, turn.cited || []);
  return element;
}

// Marks open what they lead to; links open beside the site.
function adorn(element, cited) {
  for (const link of element.querySelectorAll('a')) link.target = '_blank';
  for (const mark of element.querySelectorAll('button.mark')) {
    const place = cited.find((one) => one.number === Number(mark.dataset.number));
    mark.title = place ? [place.name, place.where].filter(Boolean).join(', ') : '';
    mark.setAttribute('aria-label', `${mark.textContent}: ${mark.title}`);
    mark.addEventListener('click', () => place && show(place, mark));
  }
}

function show(place, mark) {
  if (place.url) { open(place.url, '_blank', 'noopener,noreferrer'); return; }
  const close = made('button', { type: 'button', className: 'close', textContent: '×', title: words.close });
  close.setAttribute('aria-label', words.close);
  const parts = [made('header', {}, made('strong', { textContent: place.name, dir: 'auto' }), made('span', { textContent: place.where || '' }), close)];
  if (place.quote) parts.push(made('blockquote', { textContent: place.quote, dir: 'auto' }));
  if (place.picture) {
    const picture = made('img', { src: place.picture, alt: [place.name, place.where].join(', ') });
    const paper = made('div', { className: 'paper' }, picture);
    picture.addEventListener('load', () => {
      const [wide, high] = [picture.naturalWidth / place.zoom, picture.naturalHeight / place.zoom];
      const boxes = place.boxes.map(([x0, y0, x1, y1]) => {
        const box = made('i');
        Object.assign(box.style, { left: `${100 * x0 / wide}%`, top: `${100 * y0 / high}%`, width: `${100 * (x1 - x0) / wide}%`, height: `${100 * (y1 - y0) / high}%` });
        return box;
      });
      paper.append(...boxes);
      boxes[0]?.scrollIntoView({ block: 'center' });
    });
    parts.push(paper);
  }
  const leave = () => { source.hidden = true; source.replaceChildren(); mark.focus(); };
  close.addEventListener('click', leave);
  source.onkeydown = (event) => { if (event.key === 'Escape') { event.stopPropagation(); leave(); } };
  source.replaceChildren(...parts);
  source.hidden = false;
  close.focus();
}

function draw() {
  const first = starters.map((one) => {
    const button = made('button', { type: 'button', className: 'starter', textContent: one, dir: 'auto' });
    button.addEventListener('click', () => ask(one));
    return button;
  });
  talk.replaceChildren(...turns.length ? turns.map(bubble) : first);
  talk.scrollTop = talk.scrollHeight;
  again.hidden = !turns.length;
}

function told(sentence) {
  talk.append(made('p', { className: 'told', textContent: sentence }));
  talk.scrollTop = talk.scrollHeight;
}

function busy(stop) {
  running = stop;
  send.textContent = stop ? '■' : '↑';
  send.setAttribute('aria-label', stop ? words.stop : words.send);
}

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split('\n\n');
    rest = lines.pop();
    for (const line of lines) if (line.startsWith('data: ')) yield JSON.parse(line.slice(6));
  }
}

async function ask(question) {
  if (running || !question.trim()) return;
  turns.push({ role: 'user', content: question });
  draw();
  const shown = made('div', { className: 'turn waiting', textContent: words.thinking, dir: 'auto' });
  talk.append(shown);
  talk.scrollTop = talk.scrollHeight;
  const stop = new AbortController();
  busy(stop);
  const turn = { role: 'assistant', content: '', html: '', cited: [] };
  let failed = '';
  try {
    const messages = turns.slice(-39).map(({ role, content }) => ({ role, content }));
    while (messages[0].role !== 'user') messages.shift();
    const answer = await call('ask', { method: 'POST', signal: stop.signal, body: JSON.stringify({ who, messages }), headers: { 'Content-Type': 'application/json' } });
    if (!answer.ok) failed = await problem(answer);
    else for await (const event of events(answer)) {
      const follow = isAtEnd();
      if (event.html !== undefined) {
        shown.className = 'turn';
        shown.innerHTML = turn.html = event.html;
        turn.content = event.text || shown.textContent;
      } else if (event.tool && !turn.html) shown.textContent = words.tool;
      if (event.cited) turn.cited = event.cited;
      if (event.failed) failed = event.failed;
      if (follow) talk.scrollTop = talk.scrollHeight;
    }
  } catch (error) {
    if (error.name !== 'AbortError') failed = words.failed;
  }
  busy(null);
  if (turn.content) { turns.push(turn); adorn(shown, turn.cited); }
  else { shown.remove(); turns.pop(); text.value ||= question; }
  keep();
  again.hidden = !turns.length;
  if (failed) told(failed);
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  if (running) { running.abort(); return; }
  const question = text.value;
  text.value = '';
  grow();
  ask(question);
});
text.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing && event.keyCode !== 229) { event.preventDefault(); if (!running) form.requestSubmit(); }
});
function grow() {
  text.style.height = 'auto';
  text.style.height = `${Math.min(text.scrollHeight, 140)}px`;
}
text.addEventListener('input', grow);
again.addEventListener('click', () => { running?.abort(); turns = []; keep(); draw(); text.focus(); });
addEventListener('keydown', (event) => { if (event.key === 'Escape' && !event.defaultPrevented && source.hidden) parent.postMessage('parlour-embed-close', '*'); });

(async () => {
  turns = earlier();
  draw();
  try {
    const answer = await call(`about?${new URLSearchParams({ who })}`);
    if (!answer.ok) { told(await problem(answer)); return; }
    const about = await answer.json();
    at('name').textContent = document.title = about.name;
    at('sign').textContent = about.sign;
    starters = about.starters;
    if (!turns.length) draw();
  } catch { told(words.failed); }
})();
