// Requests of our own, beside Gradio's: JSON there and back. What fails is `{ failed: sentence }`, and `field` where it is
// about one of a form.
import { say } from './words.js';

export async function request(address, failed, body) {
  const options = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  try {
    const answer = await fetch(address, { cache: 'no-store', credentials: 'same-origin', ...options });
    const told = await answer.json();  // a refusal says why
    return answer.ok ? told : { failed: told.failed ?? say(failed), field: told.field };
  } catch {
    return { failed: say(failed) };
  }
}
