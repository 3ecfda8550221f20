// All links of the reader's in the settings, one row for each. Its data come from the server and become text.
import { about, acts } from './links.js';
import { make } from './models_form.js';
import { request } from './request.js';
import { say } from './words.js';

// `told` says how it went, beside the heading of the page.
export function sharedLinks(told) {
  const element = make('div');
  let busy = false;

  function row(one) {
    const name = one.title || say('share_untitled');
    const parts = acts(one, name, { revoke: () => revoke(one.share), told: (said) => told(said) });
    return make('div', { className: 'p-set p-link-row', attributes: { 'data-share': one.share } },
      make('div', { className: 'p-what' }, make('span', { className: 'p-label', textContent: name, title: name, dir: 'auto' }),
        make('span', { className: 'p-note', textContent: about(one) })),
      make('div', { className: 'p-how' }, ...parts));
  }

  function draw(links) {
    element.replaceChildren(...links.length ? links.map(row) : [make('p', { className: 'p-about p-none', textContent: say('share_none') })]);
  }

  // The keyboard goes to the row that stands there now, or to the heading.
  async function revoke(share) {
    if (busy) return;
    busy = true;
    const at = [...element.children].findIndex((one) => one.dataset.share === share);
    const answer = await request('./shares/revoke', 'share_failed', { share });
    busy = false;
    if (answer.failed) return told(answer.failed, 'bad');
    draw(answer.links);
    told(say('share_revoked'));
    (element.children[Math.min(at, element.children.length - 1)]?.querySelector('.p-danger') ?? document.getElementById('p-s-links'))?.focus();
  }

  return { element, draw };
}
