// What the page does by itself. Everything that changes state goes over the bus to the server.
import { start as actions } from './actions.js';
import { start as approval } from './approval.js';
import { start as bringing } from './bringing.js';
import { start as bus } from './bus.js';
import { start as choices } from './choices.js';
import { start as choosing } from './choosing.js';
import { start as code } from './code.js';
import { start as commands } from './commands.js';
import { start as composer } from './composer.js';
import { start as connection } from './connection.js';
import { start as editing } from './editing.js';
import { start as focus } from './focus.js';
import { start as folds } from './folds.js';
import { start as manyFiles } from './many_files.js';
import { start as framed } from './framed.js';
import { start as goingBack } from './going_back.js';
import { start as history } from './history.js';
import { start as holding } from './holding.js';
import { start as jump } from './jump.js';
import { start as keeping } from './keeping.js';
import { start as keys } from './keys.js';
import { start as mentions } from './mentions.js';
import { start as list } from './list.js';
import { start as meter } from './meter.js';
import { start as demo } from './demo.js';
import { start as dictation } from './dictation.js';
import { start as microphone } from './microphone.js';
import { start as notices } from './notices.js';
import { start as offline } from './offline.js';
import { start as paper } from './paper.js';
import { start as pasting } from './pasting.js';
import { start as pictures } from './pictures.js';
import { start as places } from './places.js';
import { start as pressing } from './pressing.js';
import { start as prompts } from './prompts.js';
import { start as queue } from './queue.js';
import { start as reading } from './reading.js';
import { start as rows } from './rows.js';
import { start as scrolling } from './scroll.js';
import { start as selecting } from './selecting.js';
import { start as selection } from './selection.js';
import { start as settings } from './settings.js';
import { start as side } from './side.js';
import { start as speech } from './speech.js';
import { start as standing } from './standing.js';
import { watch } from './state.js';
import { start as steering } from './steering.js';
import { start as stopping } from './stopping.js';
import { start as tables } from './tables.js';
import { start as tabs } from './tabs.js';
import { start as takingOver } from './taking_over.js';
import { start as viewport } from './viewport.js';
import { start as waiting } from './waiting.js';

for (const start of [holding, bus, dictation, choices, selecting, takingOver, goingBack, places, demo, framed, paper, list, history, keeping, bringing, queue, pressing, actions, keys, folds, manyFiles, editing, pasting, approval, mentions, prompts, composer, connection, focus, meter, microphone, reading, rows, scrolling, selection, speech, tables, tabs, waiting, commands, jump, settings, code, side, viewport, notices, pictures, choosing, steering, standing, stopping, offline]) {
  // What a browser refuses one part keeps no other from beginning.
  try { start(); } catch (error) { reportError(error); }
}
watch();
