// What the palette can do besides finding: what the page has a button for, and a folder, which is seldom attached.
import { attachFolder } from './attaching.js';
import { bringIn } from './bringing.js';
import { ask } from './bus.js';
import { isDark, toggleTheme } from './choices.js';
import { canChooseFolder } from './folders.js';
import { openKeys } from './keys.js';
import { openLibraries } from './libraries.js';
import { openModels } from './models.js';
import { offer } from './palette.js';
import { openConversation, visit } from './places.js';
import { share } from './share.js';
import { status } from './state.js';
import { openTools } from './tools.js';
import { say } from './words.js';

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);

const titleShown = () => document.querySelector('#top h1')?.textContent ?? '';

function begin() { openConversation(''); document.querySelector('#composer textarea')?.focus(); }

function take(href) {
  Object.assign(document.createElement('a'), { href, download: '' }).click();
}

function commands() {
  const all = [
    { icon: 'plus', name: say('keys_new'), keys: MAC ? '⌘ ⇧ O' : 'Ctrl Shift O', act: begin },
    { icon: 'plus', name: say('palette_temporary'), act: () => { begin(); ask({ do: 'temporary', on: true }); }, there: '#top .p-open-steer' },
    { icon: 'books', name: say('palette_libraries'), act: () => openLibraries(), there: '#history [data-do="libraries"]' },
    { icon: 'tool', name: say('palette_tools'), act: () => openTools(), there: '#history [data-do="tools"]' },
    { icon: 'sliders', name: say('models_title'), act: openModels, there: '#top .p-open-models' },
    { icon: 'sliders', name: say('settings_title'), act: () => visit('general') },
    { icon: 'keyboard', name: say('keys_title'), keys: '?', act: openKeys },
    { icon: isDark() ? 'sun' : 'moon', name: say('theme', { theme: say(isDark() ? 'light' : 'dark') }), act: toggleTheme },
  ];
  if (canChooseFolder()) all.push({ icon: 'file', name: say('palette_folder'), act: attachFolder, there: '#composer input[type="file"]' });
  all.push({ icon: 'file', name: say('palette_import'), act: bringIn });
  all.push({ icon: 'file', name: say('palette_export_all'), act: () => take('./conversations/export?as=bundle') });
  const id = status()?.conversation;
  if (id) all.push({ icon: 'file', name: say('share'), act: () => share(id, titleShown(), ['#composer textarea']) });
  if (id) all.push({ icon: 'file', name: say('palette_export'), act: () => take(`./conversations/${encodeURIComponent(id)}/export?as=html`) });
  if (id) all.push({ icon: 'file', name: say('palette_export_bundle'), act: () => take(`./conversations/${encodeURIComponent(id)}/export?as=bundle`) });
  return all.filter((one) => !one.there || document.querySelector(one.there));
}

export function start() { offer(commands); }
