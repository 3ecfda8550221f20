// What the palette can do besides finding: each command is one that the page has a button for.
import { openKeys } from './keys.js';
import { openLibraries } from './libraries.js';
import { openModels } from './models.js';
import { offer } from './palette.js';
import { openConversation, toggleTheme } from './places.js';
import { status } from './state.js';
import { openTools } from './tools.js';
import { say } from './words.js';

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);

function begin() { openConversation(''); document.querySelector('#composer textarea')?.focus(); }

function take() {
  const href = `./conversations/${encodeURIComponent(status().conversation)}/export?as=md`;
  Object.assign(document.createElement('a'), { href, download: '' }).click();
}

const isDark = () => document.documentElement.classList.contains('dark');

function commands() {
  const all = [
    { icon: 'plus', name: say('keys_new'), keys: MAC ? '⌘ ⇧ O' : 'Ctrl Shift O', act: begin },
    { icon: 'books', name: say('palette_libraries'), act: () => openLibraries(), there: '#history [data-do="libraries"]' },
    { icon: 'tool', name: say('palette_tools'), act: () => openTools(), there: '#history [data-do="tools"]' },
    { icon: 'sliders', name: say('models_title'), act: openModels, there: '#top .p-open-models' },
    { icon: 'keyboard', name: say('keys_title'), keys: '?', act: openKeys },
    { icon: isDark() ? 'sun' : 'moon', name: say('theme', { theme: say(isDark() ? 'light' : 'dark') }), act: toggleTheme },
  ];
  if (status()?.conversation) all.push({ icon: 'file', name: say('palette_export'), act: take });
  return all.filter((one) => !one.there || document.querySelector(one.there));
}

export function start() { offer(commands); }
