// A browser that gives no microphone says so only to programs. In a frame, the page around this one has to lend it.
import { hint } from './hint.js';
import { say } from './words.js';

const REFUSED = ['NotAllowedError', 'SecurityError'];
const isFramed = () => parent !== self;
// What the page around this one says; undefined in browsers that do not tell.
const isLent = () => (document.permissionsPolicy ?? document.featurePolicy)?.allowsFeature?.('microphone');

export const isWithheld = () => isFramed() && isLent() === false;
export const isRefusal = (error) => REFUSED.includes(error.name);

export function tellRefused() {
  if (!isFramed() || isLent()) return hint('microphone_refused');
  const way = { href: './', target: '_blank', rel: 'noopener', textContent: say('framed_open') };
  hint('microphone_framed', {}, Object.assign(document.createElement('a'), way));
}

// Before the recorder opens, in which a press would only then meet the refusal.
function pressed(event) {
  if (!event.target.closest?.('#composer .microphone-button') || !isWithheld()) return;
  event.stopImmediatePropagation();
  event.preventDefault();
  tellRefused();
}

export function start() {
  addEventListener('click', pressed, true);
  const devices = navigator.mediaDevices;
  if (!devices?.getUserMedia) return;
  const ask = devices.getUserMedia.bind(devices);
  devices.getUserMedia = async (wanted) => {
    try {
      return await ask(wanted);
    } catch (error) {
      if (isRefusal(error)) tellRefused();
      else hint('microphone_none');
      document.querySelector('#composer .microphone-button.recording')?.click();  // puts the recorder away
      throw error;
    }
  };
}
