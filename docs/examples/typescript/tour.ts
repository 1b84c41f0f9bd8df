// A whole session, step by step in the order of docs/temporal-interface.md; one line for each step.
//
//   npm run tour -- night-train
//
// TEMPORAL_ADDRESS names the server; 127.0.0.1:7233 when it is not set. The session must be new.

import { setTimeout as sleep } from 'node:timers/promises';

import type { Client, WorkflowHandle } from '@temporalio/client';

import {
  connected,
  explain,
  graph,
  refusal,
  resultOf,
  start,
  state,
  update,
  type Approval,
  type Configure,
  type Control,
  type Interject,
  type Receipt,
  type Resolve,
  type SessionResult,
  type SessionView,
  type TurnResult,
} from './turnwright.js';

async function tour(client: Client, sessionId: string): Promise<void> {
  const session = await start(client, { session_id: sessionId });
  say('start', session.workflowId);
  await firstTurn(client, session);
  await approveBySignal(client, session);
  await denyByUpdate(client, session);
  await interject(session);
  await runManually(client, session);
  await configure(session, { bindings: { 'chronicle/story': 'plugin' } });
  await configure(session, { packages: ['chronicle', 'weather'] });
  await pauseAndResume(session);
  await stopByControl(client, session);
  await stopByCancel(client, session);
  await end(client, session, sessionId);
}

async function firstTurn(client: Client, session: WorkflowHandle): Promise<void> {
  const turn = await submit(session, 'a1', 'I look out of the window.');
  say('result', ending(await resultOf(client, turn)));
  const view = await until(session, (now) => now.last_turn?.turn_id === turn.turn_id);
  say('state', `${view.status}, ${view.phase}, ${view.completed_player_turns} turn, last ${view.last_turn?.status}`);
  const { nodes } = await graph(client, turn);
  say('graph', nodes.map((node) => `${node.runtime_id} ${node.status ?? 'waiting'}`).join(', '));
}

async function approveBySignal(client: Client, session: WorkflowHandle): Promise<void> {
  const turn = await submit(session, 'a2', 'I read the letter. I mark a milestone.');
  const approval = await question(session, turn);
  if (approval) {
    say('list', await listed(client, "WorkflowType = 'Session' AND TurnwrightWaitingFor IS NOT NULL"));
    await session.signal<[Resolve]>('resolve', { ref: approval.ref, decision: 'approve', actor: 'Ada' });
    say('signal', 'approve');
  }
  say('result', ending(await resultOf(client, turn)));
}

async function denyByUpdate(client: Client, session: WorkflowHandle): Promise<void> {
  const turn = await submit(session, 'a3', 'I read the postcard. I mark a milestone.');
  const approval = await question(session, turn);
  if (approval) {
    say('resolve', await answer(update(session, 'resolve', { ref: approval.ref, decision: 'deny', note: 'Not yet.' })));
  }
  say('result', ending(await resultOf(client, turn)));
  say('resolve', await answer(update(session, 'resolve', { ref: 'no-such', decision: 'deny' })));
}

async function interject(session: WorkflowHandle): Promise<void> {
  say('interject', await answer(update(session, 'interject', { interjection_id: 'i1', text: 'Keep it short.' })));
  await session.signal<[Interject]>('interject', { interjection_id: 'i2', text: 'And quiet.' });
  say('signal', 'interject');
}

async function runManually(client: Client, session: WorkflowHandle): Promise<void> {
  const payload = { text: 'aska' };
  const query = await update(session, 'run', { action_id: 'q1', runtime_id: 'fact-index/query', payload });
  say('run', `turn ${query.turn_id}, ${query.position} before it`);
  say('output', JSON.stringify((await resultOf(client, query)).output));

  const guess = await update(session, 'run', { action_id: 'q2', runtime_id: 'fact-index/guess' });
  say('run', `turn ${guess.turn_id}, ${guess.position} before it`);
  say('result', await resultOf(client, guess).then(ending, explain));
  const { notices } = await until(session, (view) => view.last_turn?.turn_id === guess.turn_id);
  say('state', `notice ${notices.at(-1)?.code}`);
}

// A change is applied once no turn runs; one that cannot be applied leaves a notice.
async function configure(session: WorkflowHandle, change: Configure): Promise<void> {
  const before = await state(session);
  const { revision } = await update(session, 'configure', change);
  const after = await until(session, (view) => view.revision >= revision);
  say('configure', `revision ${revision} of ${Object.keys(change)}`);
  say('state', after.notices.slice(before.notices.length).map(({ code, message }) => `${code}: ${message}`)[0] ?? 'applied');
}

async function pauseAndResume(session: WorkflowHandle): Promise<void> {
  await control(session, { action: 'pause' });
  say('submit', await answer(update(session, 'submit', { action_id: 'a4', text: 'I read the diary.' })));
  await control(session, { action: 'resume' });
}

async function stopByControl(client: Client, session: WorkflowHandle): Promise<void> {
  const turn = await submit(session, 'a4', 'I read the diary. I mark a milestone.');
  say('graph', (await graph(client, turn)).status);
  await control(session, { action: 'cancel-turn', turn_id: turn.turn_id });
  say('result', ending(await resultOf(client, turn)));
}

async function stopByCancel(client: Client, session: WorkflowHandle): Promise<void> {
  const turn = await submit(session, 'a5', 'I read the ticket. I mark a milestone.');
  say('graph', (await graph(client, turn)).status);
  await client.workflow.getHandle(turn.workflow_id).cancel();
  say('cancel', turn.workflow_id);
  say('result', ending(await resultOf(client, turn)));
}

async function end(client: Client, session: WorkflowHandle, sessionId: string): Promise<void> {
  const ours = `TurnwrightSession = '${sessionId.replaceAll("'", "''")}'`;
  say('list', await listed(client, `${ours} AND WorkflowType = 'Turn' AND TurnwrightStatus = 'failed'`));
  await control(session, { action: 'end' });
  const result: SessionResult = await session.result();
  say('result', `${result.completed_player_turns} turns`);
  say('start', await start(client, { session_id: sessionId }).then(({ workflowId }) => workflowId, explain));
}

async function control(session: WorkflowHandle, message: Control): Promise<void> {
  say('control', `${message.action} ${await answer(update(session, 'control', message))}`);
}

async function submit(session: WorkflowHandle, action_id: string, text: string): Promise<Receipt> {
  const turn = await update(session, 'submit', { action_id, text });
  say('submit', `turn ${turn.turn_id}, ${turn.position} before it`);
  return turn;
}

// The question of a tool of this turn; none where the turn ends without one.
async function question(session: WorkflowHandle, turn: Receipt): Promise<Approval | undefined> {
  const open = (view: SessionView) =>
    view.approvals.find((approval) => approval.turn_id === turn.turn_id && approval.status === 'open');
  const view = await until(session, (now) => open(now) !== undefined || now.last_turn?.turn_id === turn.turn_id);
  const approval = open(view);
  say('state', approval ? `${approval.tool} asks, ${approval.arguments ?? ''}` : 'no tool asks');
  return approval;
}

async function until(session: WorkflowHandle, there: (view: SessionView) => boolean): Promise<SessionView> {
  for (;;) {
    const view = await state(session);
    if (there(view)) return view;
    await sleep(200);
  }
}

// Visibility follows with a short delay, so an empty list is asked for again.
async function listed(client: Client, query: string): Promise<string> {
  for (;;) {
    const ids: string[] = [];
    for await (const { workflowId } of client.workflow.list({ query })) ids.push(workflowId);
    if (ids.length > 0) return ids.join(', ');
    await sleep(200);
  }
}

// What an update answers, or the code that it is refused with.
async function answer(update: Promise<unknown>): Promise<string> {
  try {
    return JSON.stringify(await update);
  } catch (error) {
    const refused = refusal(error);
    if (!refused) throw error;
    return `refused: ${refused.type}`;
  }
}

// Status, reason, and the first line of the story; what a turn does not have is left out.
function ending({ status, reason, story }: TurnResult): string {
  return [status, reason, story?.text.split('\n')[0]].filter(Boolean).join(', ');
}

function say(step: string, text: string): void {
  console.log(`${step.padEnd(10)}${text}`);
}

const [sessionId = 'night-train'] = process.argv.slice(2);
await connected((client) => tour(client, sessionId));
