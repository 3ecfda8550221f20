// A browser that gives no microphone says so only to programs.
import { hint } from './hint.js';

const SAID = { NotAllowedError: 'microphone_refused', SecurityError: 'microphone_refused' };

export function start() {
  const devices = navigator.mediaDevices;
  if (!devices?.getUserMedia) return;
  const ask = devices.getUserMedia.bind(devices);
  devices.getUserMedia = async (wanted) => {
    try {
      return await ask(wanted);
    } catch (error) {
      hint(SAID[error.name] ?? 'microphone_none');
      document.querySelector('#composer .microphone-button.recording')?.click();  // puts the recorder away
      throw error;
    }
  };
}
