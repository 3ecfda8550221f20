// The text behind a message, as it was written: for copying and for changing a question.
// Gradio writes it into aria-label, where a screen reader would say everything twice: it is kept here instead.
const sources = new WeakMap();

export function takeSources() {
  for (const element of document.querySelectorAll('#chat [data-testid][aria-label]')) {
    sources.set(element, element.getAttribute('aria-label').replace(/^(user|bot)'s message: /, ''));
    element.removeAttribute('aria-label');
  }
  // Initials are a picture: the name stands beside them. What is inside of a message may not say so itself.
  for (const face of document.querySelectorAll('#chat .p-face:not([aria-hidden])')) face.setAttribute('aria-hidden', 'true');
}

const decoder = document.createElement('textarea');
function decoded(text) { decoder.innerHTML = text; return decoder.value; }

// Undo what the server did to make Markdown safe; our own markup is left out.
export function plain(markup) {
  return markup
    .replace(/<div class="p-[\s\S]*?<\/div>(?=\n|$)/g, '')
    .replace(/<p class="p-[\s\S]*?<\/p>(?=\n|$)/g, '')
    .replace(/<sup><a href="#cite-[^>]*>(\d+)<\/a><\/sup>/g, ' [$1]')
    .replace(/ <a class="p-do p-picture"[^>]*>[^<]*<\/a>/g, '')
    .replace(/<sup><a class="p-do p-foot(back)?(?: p-next)?" role="button" href="#do-foot(?:back)?-\d+-([\w.-]+)">\d+<\/a><\/sup>/gu,
      (_, back, name) => (back ? `[^${name}]:` : `[^${name}]`))
    .replace(/<sup><a class="(?:p-do )?p-claim[\s\S]*?<\/a><\/sup>/g, '')
    .replace(/<code>([\s\S]*?)<\/code>/g, (_, code) => '`' + decoded(code) + '`')
    .replace(/[\ue000\ue001]/g, '$').replace(/[\ue002\ue003]/g, '$$$$')
    .replace(/\u2060|&#8203;/g, '')
    .replace(/&lt;/g, '<').replace(/&gt;/g, '>')
    .replace(/^(\s*\n)+/, '').trimEnd();
}

export function replyText(row) {
  takeSources();  // what was drawn a moment ago is not taken yet
  const said = [...row.querySelectorAll('[data-testid="bot"]')]
    .filter((element) => !element.querySelector('.thought-group'))
    .map((element) => ({ who: element.querySelector('.p-face + span')?.textContent ?? '', text: plain(sources.get(element) ?? '') }))
    .filter(({ who, text }) => who || text);
  // Where several speak, a name stands before what each says, if that is anything.
  return said.filter(({ who }, at) => !who || said[at + 1]?.text).map(({ who, text }) => (who ? `${who}:` : text)).join('\n\n');
}

// A question stands on the page as it was typed.
export function questionText(row) {
  return [...row.querySelectorAll('.p-asked')].map((asked) => {
    const copy = asked.cloneNode(true);
    for (const end of copy.querySelectorAll('br')) end.replaceWith('\n');
    return copy.textContent;
  }).join('\n\n');
}
