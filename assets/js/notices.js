// A notice of the system when a reply ends while nobody looks. Asked for at the first such reply, never before.
import { chosen, choose } from './choices.js';
import { onChange, status } from './state.js';
import { say } from './words.js';

const LONG = 8000;  // milliseconds: who waits less is still there
let since = 0;      // when the reply began that is being written
let room = '';
let missed = false;

const can = () => 'Notification' in window && window.isSecureContext;

export const wantsNotices = () => can() && chosen('notices') !== 'off' && Notification.permission !== 'denied';

// The switch of the settings.
export async function askForNotices(on) {
  choose('notices', on ? '' : 'off');
  if (on && can() && Notification.permission === 'default') await Notification.requestPermission();
  return !on || can() && Notification.permission === 'granted';
}

function tell() {
  const title = document.querySelector('#top .p-title')?.textContent.trim() || 'Parlour';
  const notice = new Notification(title, { body: say('notice'), tag: room || 'parlour', icon: './assets/icons/mark.svg' });
  notice.addEventListener('click', () => { window.focus(); notice.close(); });
}

function look() {
  const now = status();
  if (!now) return;
  if (now.conversation !== room) { room = now.conversation; since = now.state === 'running' ? Date.now() : 0; return; }
  if (now.state === 'running') { since ||= Date.now(); return; }
  if (now.state === 'stopping' || !since) return;
  const long = Date.now() - since >= LONG;
  since = 0;
  if (!long || !document.hidden || !wantsNotices()) return;
  if (Notification.permission === 'granted') tell();
  else missed = true;
}

// Browsers let a page ask only while somebody presses something: the first press after a reply was missed.
function returned() {
  if (!missed || document.hidden) return;
  missed = false;
  if (wantsNotices() && Notification.permission === 'default') Notification.requestPermission();
}

export function start() {
  onChange(look);
  addEventListener('pointerup', returned, true);
  addEventListener('keyup', returned, true);
}
