// What a proxy in front of Parlour answers itself: a page or nothing, where Parlour answers with a sentence or JSON.
import { say } from './words.js';

export const DOWN = new Set([502, 503, 504]);  // what a proxy says where Parlour is not there

// A sentence for an answer that is none of Parlour's; '' for its own.
export function saidInFront(status, type) {
  if (status < 400 || /^(text\/plain|application\/json)\b/.test(type ?? '')) return '';
  if (status === 413) return say('in_front_large');
  return DOWN.has(status) ? say('in_front_down') : say('in_front', { status });
}

// The answer, with its sentence in place of a page that Gradio's notice would show in a proxy's words.
export function inOurWords(answer) {
  const said = saidInFront(answer.status, answer.headers.get('content-type'));
  return said ? new Response(said, { status: answer.status, headers: { 'content-type': 'text/plain' } }) : answer;
}
